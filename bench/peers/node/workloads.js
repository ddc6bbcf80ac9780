// The workloads, over a driver of
//   submit(jobs)                  many jobs {dueMs, delayMs, payload} in one call; resolves when the server has confirmed
//   consume(onReceived, onDone)   starts consumers; onReceived(dueMs) for each delivery, onDone() for each settled one
//   settled()                     resolves when settling has reached the server
//   expectedSubmitPerS            for the moment at which the jobs of a drain come due
//   wholeSeconds                  true where a delay has to be one of a few values
"use strict";
const PAYLOAD_BYTES = 128;
const MIN_DELAY_MS = 1000;
const MAX_DELAY_MS = 5000;
const TICK_MS = 10;
const HELD_WITHIN_MS = 1000;

const now = () => performance.timeOrigin + performance.now();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

// The due time stands at the front of the payload, so that a consumer knows it whatever the server tells.
function makeJob(dueMs, delayMs) {
  return { dueMs, delayMs, payload: String(Math.round(dueMs)).padEnd(PAYLOAD_BYTES, "x") };
}

function randomDelay(driver) {
  const delay = MIN_DELAY_MS + Math.random() * (MAX_DELAY_MS - MIN_DELAY_MS);
  return driver.wholeSeconds ? Math.round(delay / 1000) * 1000 : Math.round(delay);
}

async function submitAll(driver, { jobs, batch, connections }, make) {
  let left = jobs;
  const one = async () => {
    while (left > 0) {
      const count = Math.min(batch, left);
      left -= count;
      await driver.submit(Array.from({ length: count }, make));
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
}

// Counts deliveries, and resolves `all` when as many as expected are settled.
function counter(expected) {
  const state = { done: 0, lateness: [], expected };
  state.all = new Promise((resolve) => {
    state.onReceived = (dueMs) => state.lateness.push(now() - dueMs);
    state.onDone = () => {
      if (++state.done === state.expected) resolve();
    };
  });
  return state;
}

function percentiles(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] : null;
  return {
    p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1), count: sorted.length,
    // The due time is rounded to a millisecond on its way, hence the tolerance.
    early: sorted.filter((late) => late < -1).length,
  };
}

async function runDrain(driver, asked) {
  const begun = now();
  const delayMs = Math.round((asked.jobs / driver.expectedSubmitPerS) * 1000) + 1000;
  const due = begun + delayMs;
  let lastDue = due;
  await submitAll(driver, asked, () => {
    if (driver.wholeSeconds) lastDue = now() + delayMs;
    return makeJob(driver.wholeSeconds ? lastDue : due, driver.wholeSeconds ? delayMs : Math.max(1, due - now()));
  });
  const submitSeconds = (now() - begun) / 1000;
  await pause(lastDue - now() + 500);
  const seen = counter(asked.jobs);
  const drainBegun = now();
  await driver.consume(seen.onReceived, seen.onDone);
  await seen.all;
  await driver.settled();
  return {
    jobs: asked.jobs, submit_per_s: asked.jobs / submitSeconds,
    drain_per_s: asked.jobs / ((now() - drainBegun) / 1000), errors: 0,
  };
}

async function runLife(driver, asked) {
  const seen = counter(asked.jobs);
  await driver.consume(seen.onReceived, seen.onDone);
  const begun = now();
  await submitAll(driver, asked, () => {
    const delay = randomDelay(driver);
    return makeJob(now() + delay, delay);
  });
  const submitSeconds = (now() - begun) / 1000;
  await seen.all;
  await driver.settled();
  return {
    jobs: asked.jobs, submit_per_s: asked.jobs / submitSeconds,
    life_per_s: asked.jobs / ((now() - begun) / 1000), lateness_ms: percentiles(seen.lateness), errors: 0,
  };
}

// An open load: every tick sends what is due by then in one call, up to `connections` calls at a time; what cannot be sent
// in time is late, and the rate is not held.
async function runSteady(driver, asked) {
  const total = asked.rate * asked.seconds;
  const seen = counter(total);
  await driver.consume(seen.onReceived, seen.onDone);
  const begun = now();
  const end = begun + asked.seconds * 1000;
  const flying = new Set();
  let sent = 0;
  while (sent < total && now() < end + HELD_WITHIN_MS) {
    const wanted = Math.min(total, Math.floor(((now() - begun) / 1000) * asked.rate)) - sent;
    if (wanted > 0 && flying.size < asked.connections) {
      const count = Math.min(wanted, asked.batch);
      sent += count;
      const call = driver.submit(Array.from({ length: count }, () => {
        const delay = randomDelay(driver);
        return makeJob(now() + delay, delay);
      })).finally(() => flying.delete(call));
      flying.add(call);
    } else {
      await pause(TICK_MS);
    }
  }
  await Promise.all(flying);
  const submitted = now() - begun;
  // Held: all is stored within a second of the time, and settled within a second of the last due time.
  await Promise.race([seen.all, pause(end + MAX_DELAY_MS + HELD_WITHIN_MS - now())]);
  const held = sent === total && submitted < asked.seconds * 1000 + HELD_WITHIN_MS && seen.done === total;
  return {
    jobs: sent, rate: asked.rate, held,
    lateness_ms: percentiles(seen.lateness), errors: 0,
  };
}

module.exports = { runDrain, runLife, runSteady };
