// graphile-worker: add_jobs in SQL with arrays, a local queue and batched completion, as its page on performance advises.
"use strict";
const { Pool } = require("pg");
const { run, runMigrations, Logger } = require("graphile-worker");

const CONCURRENCY = 24;
const SETTINGS = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const ADD = `select count(*) from graphile_worker.add_jobs((
  select array_agg(row('bench', to_json(p), null, run_at, null, null, null, null)::graphile_worker.job_spec)
  from unnest($1::text[], $2::timestamptz[]) as given(p, run_at)), false)`;

async function connect({ host, port, connections }) {
  const pool = new Pool({ host, port, user: "bench", database: "postgres", max: connections + 4 });
  pool.on("error", (error) => console.error(String(error)));
  pool.on("connect", (client) => client.on("error", (error) => console.error(String(error))));
  const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
  await runMigrations({ pgPool: pool, logger });
  return {
    expectedSubmitPerS: 40000,
    wholeSeconds: false,
    submit: (jobs) => pool.query(ADD, [jobs.map((job) => job.payload), jobs.map((job) => new Date(job.dueMs).toISOString())]),
    async consume(onReceived, onDone) {
      const runner = await run({
        pgPool: pool, logger, noHandleSignals: true, preset: { worker: SETTINGS },
        concurrency: CONCURRENCY, pollInterval: 50,
        taskList: { bench: (payload) => onReceived(parseInt(payload, 10)) },
      });
      runner.events.on("job:success", onDone);
    },
    // A success is announced before the batch that deletes the rows is written.
    async settled() {
      for (;;) {
        const { rowCount } = await pool.query("select 1 from graphile_worker._private_jobs limit 1");
        if (rowCount === 0) return;
      }
    },
  };
}

module.exports = { connect };
