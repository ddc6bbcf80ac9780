import assert from "node:assert/strict";
import {test} from "node:test";
import {parseExact, prettyJson, stringifyExact} from "../src/lib/json";

test("integers that a double cannot hold keep every digit", () => {
  const parsed = parseExact('{"a":9007199254740993,"b":[-12345678901234567890,1,2.5],"c":"9007199254740993"}') as Record<string, unknown>;
  assert.equal(parsed["a"], 9007199254740993n);
  assert.deepEqual(parsed["b"], [-12345678901234567890n, 1, 2.5]);
  assert.equal(parsed["c"], "9007199254740993");
});

test("numbers that a double holds are numbers", () => {
  assert.deepEqual(parseExact('[1795042279932, 1234567890123456, 1e30]'), [1795042279932, 1234567890123456, 1e30]);
});

test("strings with quotes and digits are not taken for numbers", () => {
  const text = JSON.stringify({"a\\\"9007199254740993": 'x"1234567890123456789'});
  assert.deepEqual(parseExact(text), JSON.parse(text));
});

test("what is no JSON throws", () => {
  assert.throws(() => parseExact('{"a":9007199254740993'), SyntaxError);
});

test("a bigint is sent with all its digits", () => {
  assert.equal(stringifyExact({a: 9223372036854775806n, b: "int-1"}), '{"a":9223372036854775806,"b":"int-1"}');
});

test("pretty JSON copies numbers and strings as they are", () => {
  assert.equal(prettyJson('{"n":12345678901234567890, "x":1.0, "s":"a\\u0041,{}", "e":[ ], "o":{}}'),
               '{\n  "n": 12345678901234567890,\n  "x": 1.0,\n  "s": "a\\u0041,{}",\n  "e": [],\n  "o": {}\n}');
  assert.equal(prettyJson("[1,[2,3]]"), "[\n  1,\n  [\n    2,\n    3\n  ]\n]");
});

test("a repeated key stays, and what is no JSON is null", () => {
  assert.equal(prettyJson('{"a":1,"a":2}'), '{\n  "a": 1,\n  "a": 2\n}');
  assert.equal(prettyJson("cancel if not paid"), null);
  assert.equal(prettyJson(""), null);
});

test("deep nesting stays linear", () => {
  const deep = "[".repeat(5000) + "1" + "]".repeat(5000);
  assert.ok(prettyJson(deep)!.length < 5000 * 2 * 140);
});
