// A histogram as a table of bars: read by screen readers as it is.
import {count, percent} from "../lib/format";
import {Bar} from "../ui/basics";

export interface Bucket {
  label: string;
  count: number;
}

export function Histogram({buckets, label}: {buckets: Bucket[]; label: string}) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const total = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  return (
    <table class="histogram" aria-label={label}>
      <tbody>
        {buckets.map((bucket) => (
          <tr key={bucket.label}>
            <th scope="row">{bucket.label}</th>
            <td class="histogram-bar"><Bar share={bucket.count / most} /></td>
            <td class="number">{count(bucket.count)}</td>
            <td class="number muted">{percent(bucket.count, total)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
