import assert from "node:assert/strict";
import {test} from "node:test";
import {templateText, thresholdText} from "../src/lib/alert_text";

test("thresholds have their unit", () => {
  assert.equal(thresholdText(100_000, "jobs"), "more than 100,000 jobs");
  assert.equal(thresholdText(10, "attempts"), "10 failures or more");
  assert.equal(thresholdText(90_000, "ms"), "longer than 1m 30s");
  assert.equal(thresholdText(80, "percent"), "80% or more");
  assert.equal(thresholdText(null, "jobs"), null);
});

test("the text of a rule has no braces", () => {
  assert.equal(templateText("topic {topic} has {value} dead letters, more than {threshold}: tocsin dead list {topic}", 1000, "jobs"),
               "a topic has … dead letters, more than 1,000: tocsin dead list TOPIC");
  assert.equal(templateText("failed attempts of job {detail} of topic {topic}: {value}", null, "attempts"), "failed attempts of a job of a topic: …");
  assert.equal(templateText("{value} jobs in the minute {detail}; the most is {threshold}", null, "jobs"), "… jobs in the minute …; the most is its threshold");
});
