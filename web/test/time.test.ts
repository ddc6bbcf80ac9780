import assert from "node:assert/strict";
import {test} from "node:test";
import {absolute, inputMoment, momentText, parseMoment, parseSpan, readInput, relative, span, utc} from "../src/lib/time";

const kNow = new Date(2026, 10, 18, 14, 0, 0).getTime();

test("spans have two units at most", () => {
  assert.deepEqual([0, 0.0009, 0.004, 0.25, 12, 999, 1500, 61_000, 90_000, 3_600_000, 90_061_000].map(span),
                   ["0ms", "1µs", "4µs", "0.25ms", "12ms", "999ms", "1.5s", "1m 1s", "1m 30s", "1h", "1d 1h"]);
  assert.equal(span(-90_000), "-1m 30s");
});

test("spans are read", () => {
  assert.deepEqual(["250", "5s", "1h30m", "+2h", "-1d", "15 min", "1.5h"].map(parseSpan),
                   [250, 5000, 5_400_000, 7_200_000, -86_400_000, 900_000, 5_400_000]);
  assert.deepEqual(["", "soon", "5 parsecs", "h"].map(parseSpan), [null, null, null, null]);
});

test("moments are read in the viewer's zone, with Z in UTC", () => {
  assert.equal(parseMoment("2026-11-18 14:00", 0), kNow);
  assert.equal(parseMoment("2026-11-18T14:00:00.250", 0), kNow + 250);
  assert.equal(parseMoment("2026-11-18T14:00:00Z", 0), Date.UTC(2026, 10, 18, 14));
  assert.equal(parseMoment("now-10m", kNow), kNow - 600_000);
  assert.equal(parseMoment(String(kNow), 0), kNow);
  assert.equal(parseMoment("2026-18-11", 0), null);
});

test("a moment survives its text", () => {
  for (const at of [kNow, kNow + 1000, kNow + 1]) assert.equal(parseMoment(momentText(at), 0), at);
});

test("a moment survives its text in the hour that comes twice", () => {
  const zone = process.env["TZ"];
  process.env["TZ"] = "Europe/Berlin";
  try {
    const before = Date.UTC(2026, 9, 25, 0, 30);  // 02:30 in summer time; an hour later it is 02:30 again
    for (const at of [before, before + 3_600_000, before + 7_200_000]) {
      assert.equal(parseMoment(momentText(at), 0), at);
      assert.equal(readInput(inputMoment(at), at), at);
    }
    assert.equal(readInput("2026-10-25T03:30:00", before), before + 7_200_000);
  } finally {
    if (zone === undefined) delete process.env["TZ"];
    else process.env["TZ"] = zone;
  }
});

test("relative and absolute", () => {
  assert.equal(relative(kNow + 90_000, kNow), "in 1m 30s");
  assert.equal(relative(kNow - 5000, kNow), "5s ago");
  assert.equal(relative(kNow, kNow), "now");
  assert.equal(absolute(kNow + 5), "2026-11-18 14:00:00.005");
  assert.equal(utc(Date.UTC(2026, 10, 18, 14)), "2026-11-18 14:00:00 UTC");
});
