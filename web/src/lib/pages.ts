// Lists that come page by page.
import type {Page} from "../api/types";

type Read<T> = (cursor: string | undefined) => Promise<Page<T>>;

const kEmptyPages = 5;

/** A page may be empty though more follow: reads on, but not for ever. */
export async function readOn<T>(read: Read<T>, cursor?: string): Promise<Page<T>> {
  let page = await read(cursor);
  for (let pages = 1; pages < kEmptyPages && page.items.length === 0 && page.cursor; ++pages) page = await read(page.cursor);
  return page;
}

/** The items of the first `pages` pages; with a cursor if more follow. */
export async function readAll<T>(read: Read<T>, pages: number): Promise<Page<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let i = 0; i < pages; ++i) {
    const page = await read(cursor);
    items.push(...page.items);
    cursor = page.cursor;
    if (!cursor) return {items};
  }
  return {items, ...(cursor ? {cursor} : {})};
}
