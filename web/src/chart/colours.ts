// The colours of topics: a topic keeps its own while it is shown.
const kColours = 10;
const held = new Map<string, number>();

export const kOthers = "c-others";

export function coloursOf(names: string[]): string[] {
  for (const name of [...held.keys()]) if (!names.includes(name) && held.size > kColours - names.length) held.delete(name);
  return names.map((name) => {
    if (!held.has(name)) {
      const taken = new Set(held.values());
      const free = Array.from({length: kColours}, (_, i) => i).find((i) => !taken.has(i));
      held.set(name, free ?? held.size % kColours);
    }
    return `c${held.get(name)! + 1}`;
  });
}
