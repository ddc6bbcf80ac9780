// The settings of topics, with their ranges, defaults and meanings, as the server itself describes them.
import {node} from "../api/calls";
import type {Property} from "../api/types";
import {textOfSink} from "../lib/sink_text";

export interface Setting extends Property {
  name: string;
}

export interface Schema {
  topic: Setting[];
  sinks: string[];
  sinkSettings: (sink: string) => Setting[];
}

function read(schemas: Record<string, {properties?: Record<string, Property>}>): Schema {
  const topic = schemas["TopicSettings"]?.properties ?? {};
  const delivery = schemas["Delivery"]?.properties ?? {};
  const named = (all: Record<string, Property>): Setting[] => Object.entries(all).map(([name, property]) => ({name, ...property}));
  return {
    topic: named(topic).filter(({name}) => name !== "delivery"),
    sinks: delivery["sink"]?.enum ?? ["pull"],
    sinkSettings: (sink) => (sink === "pull" ? [] : named(delivery)).flatMap((setting) => {
      const text = setting.name === "sink" ? null : textOfSink(setting.description ?? "", sink);
      return text === null ? [] : [{...setting, description: text}];
    }),
  };
}

let loaded: Promise<Schema> | undefined;

export function loadSchema(): Promise<Schema> {
  loaded ??= node.openApi().then(({components}) => read(components.schemas)).catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}
