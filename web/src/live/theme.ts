// Dark or light: as the system says, unless the viewer chose.
import {Store} from "./store";

export type Theme = "auto" | "light" | "dark";
const kKey = "tocsin-theme";
const kThemes: Theme[] = ["auto", "light", "dark"];

function stored(): Theme {
  const found = kThemes.find((theme) => theme === localStorage.getItem(kKey));
  return found ?? "auto";
}

export const themeStore = new Store<Theme>(stored());
/** Rises when colours change: charts are drawn again. */
export const coloursStore = new Store(0);

const systemDark = matchMedia("(prefers-color-scheme: dark)");

function apply(): void {
  const theme = themeStore.get();
  const dark = theme === "dark" || (theme === "auto" && systemDark.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  coloursStore.set(coloursStore.get() + 1);
}

export function nextTheme(): void {
  const next = kThemes[(kThemes.indexOf(themeStore.get()) + 1) % kThemes.length]!;
  localStorage.setItem(kKey, next);
  themeStore.set(next);
  apply();
}

systemDark.addEventListener("change", apply);
apply();
