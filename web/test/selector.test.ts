import assert from "node:assert/strict";
import {test} from "node:test";
import {fromQuery, isEmpty, parseText, type Selector, toQuery, toText} from "../src/lib/selector";

const kNow = new Date(2026, 10, 18, 14, 0, 0).getTime();

const kAll: Selector = {
  state: ["dead", "ready"], ids: ["a", "b"], id_prefix: "order-", key: "ann", header: "customer=bob smith", payload: 'say "hi"',
  reason: "timed out: bank", reason_is: "the bank timed out", holder: "worker-3", due_from_ms: kNow, due_to_ms: kNow + 3_600_000, created_from_ms: kNow - 5000,
  died_to_ms: kNow + 250, attempts_min: 2, attempts_max: 5,
};

test("a selector survives its address", () => {
  assert.deepEqual(fromQuery(new URLSearchParams(toQuery(kAll))), kAll);
});

test("a selector survives its text", () => {
  const {selector, errors} = parseText(toText(kAll), kNow);
  assert.deepEqual(errors, []);
  assert.deepEqual(selector, kAll);
});

test("a word alone is the beginning of an id", () => {
  assert.deepEqual(parseText("order-", kNow).selector, {id_prefix: "order-"});
});

test("times may be relative to now", () => {
  assert.deepEqual(parseText("due:now..now+1h30m created:-15m.. died:..14:30", kNow).selector,
                   {due_from_ms: kNow, due_to_ms: kNow + 5_400_000, created_from_ms: kNow - 900_000, died_to_ms: kNow + 1_800_000});
});

test("attempts take a number or a range", () => {
  assert.deepEqual(parseText("attempts:3", kNow).selector, {attempts_min: 3, attempts_max: 3});
  assert.deepEqual(parseText("attempts:3..", kNow).selector, {attempts_min: 3});
});

test("quotes keep blanks and colons", () => {
  assert.deepEqual(parseText('reason:"a: \\"b\\" c" topic:shop.orders', kNow), {selector: {reason: 'a: "b" c'}, topic: "shop.orders", errors: []});
});

test("what is wrong is named", () => {
  assert.match(parseText("state:gone", kNow).errors[0]!, /gone.*scheduled/);
  assert.match(parseText("due:tomorrow", kNow).errors[0]!, /due takes times/);
  assert.match(parseText("colour:red", kNow).errors[0]!, /colour/);
});

test("empty fields select everything", () => {
  assert.ok(isEmpty(fromQuery(new URLSearchParams("state=&reason=&due_from_ms=x&topic=t"))));
});
