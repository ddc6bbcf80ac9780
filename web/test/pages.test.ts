import assert from "node:assert/strict";
import {test} from "node:test";
import {readAll, readOn} from "../src/lib/pages";

/** Pages with these items; the cursor is the number of the next one. */
function pagesOf(pages: string[][]) {
  const asked: (string | undefined)[] = [];
  const read = (cursor: string | undefined) => {
    asked.push(cursor);
    const at = Number(cursor ?? 0);
    return Promise.resolve({items: pages[at]!, ...(at + 1 < pages.length ? {cursor: String(at + 1)} : {})});
  };
  return {read, asked};
}

test("empty pages are passed over", async () => {
  const {read, asked} = pagesOf([[], [], ["a"], ["b"]]);
  assert.deepEqual(await readOn(read), {items: ["a"], cursor: "3"});
  assert.deepEqual(asked, [undefined, "1", "2"]);
});

test("not more than five empty pages are read at once", async () => {
  const {read, asked} = pagesOf([[], [], [], [], [], [], ["a"]]);
  assert.deepEqual(await readOn(read), {items: [], cursor: "5"});
  assert.equal(asked.length, 5);
  assert.deepEqual(await readOn(read, "5"), {items: ["a"]});
});

test("all pages are read, up to a bound", async () => {
  const pages = [["a"], ["b", "c"], ["d"]];
  assert.deepEqual(await readAll(pagesOf(pages).read, 10), {items: ["a", "b", "c", "d"]});
  assert.deepEqual(await readAll(pagesOf(pages).read, 2), {items: ["a", "b", "c"], cursor: "2"});
});
