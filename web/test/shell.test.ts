import assert from "node:assert/strict";
import {test} from "node:test";
import {curl, quote} from "../src/lib/shell";

test("a word is quoted if the shell would read it as something else", () => {
  assert.equal(quote("http://127.0.0.1:7420/v1/topics/a%20b"), "http://127.0.0.1:7420/v1/topics/a%20b");
  assert.equal(quote("http://h/jobs/it's(1)?key=a&b"), "'http://h/jobs/it'\\''s(1)?key=a&b'");
  assert.equal(quote(""), "''");
});

test("a call names its method, the token's variable and its body", () => {
  assert.equal(curl("http://h/v1/topics"), "curl http://h/v1/topics");
  assert.equal(curl("http://h/v1/topics/t", {method: "PUT", body: '{"a":"it\'s"}', token: true}),
               `curl -X PUT -H "Authorization: Bearer $TOCSIN_TOKEN" -d '{"a":"it'\\''s"}' http://h/v1/topics/t`);
});
