// The meaning of a setting of the delivery, in the OpenAPI document one text for all sinks.

/** A setting of several sinks has a text for each: "[webhook] ... [kafka] ..."; null if it is not of this sink. */
export function textOfSink(description: string, sink: string): string | null {
  for (const [, sinks, text] of description.matchAll(/\[([a-z ]+)\] ([^[]*)/g)) {
    if (sinks === "every sink" || sinks!.split(" ").includes(sink)) return text!.trim();
  }
  return null;
}
