// How many jobs a topic has: what looks at all of them is done unasked, and again by itself, only if there are not too many.
import {topics} from "../api/calls";
import {useResource} from "./resource";

const kScanFreely = 100_000;

export interface TopicSize {
  jobs: number | undefined;  // undefined: not known yet
  small: boolean;            // few enough to be looked at freely
}

export function useTopicSize(topic: string): TopicSize {
  const {data} = useResource(`size ${topic}`, (signal) => topics.show(topic, signal), {every: 5000});
  if (!data) return {jobs: undefined, small: false};
  const {scheduled, leased, dead} = data.figures;
  const jobs = Number(scheduled) + Number(leased) + Number(dead);
  return {jobs, small: jobs <= kScanFreely};
}
