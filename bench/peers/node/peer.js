// Drives one peer through its own Node client and prints one JSON object, as load_bench does for the others:
//   NODE_PATH=<node_modules> node peer.js run --driver bullmq|graphile|rabbitmq --workload drain|life|steady
//     --address HOST:PORT [--jobs N] [--batch N] [--connections N] [--rate N] [--seconds N] [--time-limit S]
// Every loop is bounded in count, and the whole in time.
"use strict";
const { parseArgs } = require("node:util");
const { runDrain, runLife, runSteady } = require("./workloads.js");

const DRIVERS = { bullmq: "./bullmq.js", graphile: "./graphile.js", rabbitmq: "./rabbitmq.js" };
const WORKLOADS = { drain: runDrain, life: runLife, steady: runSteady };

function options() {
  const text = (fallback) => ({ type: "string", default: fallback });
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      driver: text(""), workload: text(""), address: text(""), jobs: text("20000"), batch: text("1000"),
      connections: text("4"), rate: text("5000"), seconds: text("30"), "time-limit": text("300"),
    },
  });
  if (positionals[0] !== "run") throw new Error("the first word must be run");
  if (!DRIVERS[values.driver]) throw new Error(`--driver must be one of ${Object.keys(DRIVERS).join(", ")}`);
  if (!WORKLOADS[values.workload]) throw new Error(`--workload must be one of ${Object.keys(WORKLOADS).join(", ")}`);
  const [host, port] = values.address.split(":");
  if (!Number(port)) throw new Error("--address must be HOST:PORT");
  const numbers = {};
  for (const name of ["jobs", "batch", "connections", "rate", "seconds", "time-limit"]) {
    numbers[name.replace("-l", "L")] = Number(values[name]);
    if (!(Number(values[name]) > 0)) throw new Error(`--${name} must be a number above 0`);
  }
  return { driver: values.driver, workload: values.workload, host, port: Number(port), ...numbers };
}

async function main() {
  const asked = options();
  const guard = setTimeout(() => {
    console.error(`the time limit of ${asked.timeLimit} s is over`);
    process.exit(1);
  }, asked.timeLimit * 1000);
  const driver = await require(DRIVERS[asked.driver]).connect(asked);
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const figures = await WORKLOADS[asked.workload](driver, asked);
  const seconds = (performance.now() - begun) / 1000;
  const used = process.cpuUsage(cpu);
  console.log(JSON.stringify({
    driver: asked.driver, workload: asked.workload, mode: "batched", batch: asked.batch,
    connections: asked.connections, ...figures, seconds,
    load_cpu_cores: (used.user + used.system) / 1e6 / seconds,
  }));
  // Closing politely may wait for polls of the client library, and nothing is measured any more.
  clearTimeout(guard);
  process.exit(0);
}

main().catch((error) => {
  console.error(error.stack || String(error));
  process.exit(1);
});
