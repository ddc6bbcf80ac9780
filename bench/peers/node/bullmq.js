// BullMQ: addBulk on as many connections as asked; workers with removeOnComplete, as jobs that are done are of no use here.
"use strict";
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const WORKERS = 2;
const CONCURRENCY = 100;

async function connect({ host, port, connections }) {
  const open = () => new Redis({ host, port, maxRetriesPerRequest: null });
  const queues = Array.from({ length: connections }, () => new Queue("bench", { connection: open() }));
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));
  let next = 0;
  return {
    expectedSubmitPerS: 12000,
    wholeSeconds: false,
    submit: (jobs) => queues[next++ % queues.length].addBulk(jobs.map(({ delayMs, payload }) => ({
      name: "job", data: payload, opts: { delay: Math.round(delayMs), removeOnComplete: true, removeOnFail: true },
    }))),
    async consume(onReceived, onDone) {
      for (let i = 0; i < WORKERS; i++) {
        const worker = new Worker("bench", async (job) => onReceived(parseInt(job.data, 10)),
          { connection: open(), concurrency: CONCURRENCY });
        worker.on("completed", onDone);
        worker.on("error", (error) => console.error(String(error)));
        await worker.waitUntilReady();
      }
    },
    settled: async () => {},
  };
}

module.exports = { connect };
