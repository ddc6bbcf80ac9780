import assert from "node:assert/strict";
import {test} from "node:test";
import {hexDump, textOf} from "../src/lib/bytes";
import {compact, count, oldestText, percent} from "../src/lib/format";
import {href, parseHash} from "../src/lib/route";
import {textOfSink} from "../src/lib/sink_text";
import {mixesLineEnds, runsOf, visible, withLineEndsOf} from "../src/lib/text";

test("controls, zero-width and bidi characters are shown by their code", () => {
  assert.equal(visible("a\u202eb\u0000c\u200bd\ue000"), "a<U+202E>b<U+0000>c<U+200B>d\ue000");
  assert.deepEqual(runsOf("\u202e"), [{text: "U+202E", hidden: "U+202E right-to-left override"}]);
  assert.equal(visible("half \ud83d"), "half <U+D83D>");
});

test("line feeds stay where lines are shown, and letters of all scripts anywhere", () => {
  assert.deepEqual(runsOf("a\n\tb", true), [{text: "a\n\tb"}]);
  assert.equal(visible("a\nb"), "a<U+000A>b");
  assert.deepEqual(runsOf("שלום 🎉 <b>"), [{text: "שלום 🎉 <b>"}]);
});

test("an edited text keeps its line ends", () => {
  assert.equal(withLineEndsOf("a\r\nb", "a\nb\nc"), "a\r\nb\r\nc");
  assert.equal(withLineEndsOf("a\nb", "a\nb\nc"), "a\nb\nc");
  assert.equal(withLineEndsOf("", "a\nb"), "a\nb");
  assert.ok(mixesLineEnds("a\r\nb\nc"));
  assert.equal(withLineEndsOf("a\r\nb\nc", "a\nb\nc"), "a\nb\nc");
});

test("bytes that are no UTF-8 are shown in hex", () => {
  assert.equal(textOf(new Uint8Array([0xff, 0x00])), null);
  assert.equal(hexDump(new Uint8Array([0x41, 0xff])), "00000000  41 ff" + " ".repeat(18) + "  " + " ".repeat(23) + "  A·");
});

test("numbers", () => {
  assert.equal(count(9007199254740993n), "9,007,199,254,740,993");
  assert.deepEqual([999, 9999, 45_000, 1_250_000].map(compact), ["999", "9,999", "45k", "1.25M"]);
  assert.deepEqual([percent(1, 3), percent(0, 0), percent(1, 100_000)], ["33%", "0%", "<0.1%"]);
});

test("an age that is not known does not mean that nothing waits", () => {
  assert.deepEqual([oldestText(0, null), oldestText(3, null), oldestText(3, 90_000)], ["nothing waits", "waiting", "oldest 1m 30s"]);
});

test("names of any kind survive an address", () => {
  const path = ["topics", "shop.orders", "jobs", "a/b?c#d%20 <é"];
  const route = parseHash(href(path, {key: "k&=", empty: ""}));
  assert.deepEqual(route.path, path);
  assert.deepEqual([...route.query], [["key", "k&="]]);
});

test("a setting's text is that of the sink", () => {
  const text = "[webhook] Jobs under way. [kafka rabbitmq] Jobs sent.";
  assert.equal(textOfSink(text, "rabbitmq"), "Jobs sent.");
  assert.equal(textOfSink("[every sink] Jobs a second.", "kafka"), "Jobs a second.");
  assert.equal(textOfSink("[webhook] Where.", "kafka"), null);
});
