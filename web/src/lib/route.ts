// Addresses of pages: #/topics/orders?tab=load. Names are percent-encoded, so that a topic or id may have any character.

export interface Route {
  path: string[];
  query: URLSearchParams;
}

export function parseHash(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = (mark < 0 ? text : text.slice(0, mark)).split("/").filter((part) => part !== "").map(decode);
  return {path, query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1))};
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;  // a hand-written address with a bare %
  }
}

type Query = URLSearchParams | Record<string, string | undefined>;

export function href(path: string[], query?: Query): string {
  const params = new URLSearchParams();
  const entries = query instanceof URLSearchParams ? [...query] : Object.entries(query ?? {});
  for (const [name, value] of entries) {
    if (value !== undefined && value !== "") params.append(name, value);
  }
  const text = params.toString();
  return "#/" + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}

export function go(path: string[], query?: Query): void {
  location.hash = href(path, query);
}

/** Changes the query of the present page without a new entry in the history. */
export function replaceQuery(query: Query): void {
  const next = href(parseHash(location.hash).path, query);
  history.replaceState(null, "", next);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
