// What applications do, once for all clients. `node scenarios.mjs CLIENT SCENARIO PORT [TOKEN]` ends with 0 where all held.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";

const CLIENTS = {
  ioredis: () => import("./ioredis.mjs"),
  "node-redis-2": () => import("./node_redis.mjs"),
  "node-redis-3": () => import("./node_redis.mjs"),
};

const refused = (call, pattern) => assert.rejects(call, (error) => pattern.test(error.message) || assert.fail(`${error}`));

async function life({ client, topic }) {
  const [id, outcome, due] = await client.call("JOB.SUBMIT", topic, "hello", "ID", "a", "HEADER", "h", "v");
  assert.deepEqual([id, outcome], ["a", "accepted"]);
  assert.equal(typeof due, "number");
  const [job] = await client.call("JOB.RESERVE", topic, "WAIT", 20000);
  assert.deepEqual([job[0], job[2], job[3], job[4], job[7]], ["a", "hello", 1, 16, null]);
  assert.equal(job[5], due);
  assert.deepEqual(await client.call("JOB.ACK", topic, job[1]), ["ok"]);
  assert.deepEqual(await client.call("JOB.ACK", topic, job[1]), ["stale"]);
  assert.deepEqual(await client.call("JOB.RESERVE", topic), []);
  assert.equal(await client.call("JOB.GET", topic, "a"), null);
}

async function pipelines({ client, topic }) {
  const commands = [];
  for (let i = 0; i < 1000; i++) {
    commands.push(["JOB.SUBMIT", topic, `p${i}`, "ID", `j${i}`, "DELAY", 60000]);
    commands.push(["JOB.CANCEL", topic, i % 100 === 7 ? "nobody" : `j${i}`]);
    if (i % 100 === 7) commands.push(["JOB.SUBMIT", topic, "other", "ID", `j${i}`]);
  }
  const replies = await client.pipeline(commands);
  assert.equal(replies.length, commands.length);
  commands.forEach((words, i) => {
    if (words[0] === "JOB.CANCEL") assert.equal(replies[i], words[2] === "nobody" ? "unknown" : "cancelled");
    else if (words[2] === "other") assert.match(replies[i].message, /^CONFLICT conflict: /);
    else assert.deepEqual(replies[i].slice(0, 2), [words[4], "accepted"]);
  });
}

async function binary({ client, topic }) {
  const payload = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7) % 256));
  await client.callBytes("JOB.SUBMIT", topic, payload, "ID", "bytes");
  const [job] = await client.callBytes("JOB.RESERVE", topic, "WAIT", "20000");
  assert.ok(Buffer.isBuffer(job[2]) && job[2].equals(payload));
  assert.equal((await client.callBytes("JOB.EXTEND", topic, job[1]))[0].toString(), "ok");
}

async function errors({ client, topic }) {
  await client.call("JOB.SUBMIT", topic, "x", "ID", "a", "DELAY", 1000);
  await refused(client.call("JOB.SUBMIT", topic, "y", "ID", "a"), /^CONFLICT conflict: /);
  await refused(client.call("TOPIC.GET", "no-such-topic"), /^NOTOPIC .*no-such-topic/);
  await refused(client.call("JOB.SUBMIT", topic, "y", "DEALY", 5), /^INVALID .*DELAY/);
  await refused(client.call("JOB.SUBMIT", topic, "y".repeat(2_000_000)), /^TOOLARGE /);
  await refused(client.call("GET", "x"), /^ERR unknown command 'GET'/);
  assert.equal(await client.call("PING"), "PONG");
}

async function pubsub({ client }) {
  await refused(client.subscribe(), /Tocsin has no pub\/sub.*JOB\.RESERVE/);
}

async function transactions({ client }) {
  await refused(client.transaction(), /MULTI|transaction|EXEC/i);
}

async function blocking({ client, topic }) {
  const waiting = await client.duplicate();
  const reserved = waiting.call("JOB.RESERVE", topic, "WAIT", 60000);
  const behind = waiting.call("PING", "behind");
  for (let i = 0; i < 20; i++) assert.equal(await client.call("PING"), "PONG");
  await client.call("JOB.SUBMIT", topic, "p", "ID", "woken", "DELAY", 50);
  assert.equal((await reserved)[0][0], "woken");
  assert.equal(await behind, "behind");
  waiting.close();
}

async function auth({ client, connect, options, topic }) {
  await client.call("JOB.SUBMIT", topic, "p");
  await refused(client.call("JOB.RESERVE", topic), /^NOPERM /);
  await assert.rejects(async () => {
    const wrong = await connect({ ...options, token: `tocsin_aaaaaaaa_${"b".repeat(52)}` });
    await wrong.call("JOB.SUBMIT", topic, "p");
  }, /NOAUTH|WRONGPASS|AUTH/);
}

// Maps, booleans, doubles and nulls are what they are, without a table of commands.
async function resp3({ client, topic }) {
  const settings = await client.call("TOPIC.SET", topic, "paused", "true");
  assert.equal(settings.paused, true);
  assert.equal(settings.max_attempts, 16);
  const { figures, lateness_ms } = await client.call("TOPIC.GET", topic);
  assert.equal(figures.accepted, 0);
  assert.equal(typeof lateness_ms.p50, "number");
  await client.call("JOB.SUBMIT", topic, "p", "ID", "c", "TRIGGER", "count", "COUNT", 2, "HEADER", "h", "v");
  const job = await client.call("JOB.GET", topic, "c");
  assert.deepEqual([job.due_ms, job.headers.h, job.payload], [null, "v", "p"]);
}

// Submits until it is told to stop, through every restart of the server; prints what was answered. A call without an
// answer may have happened: it is sent again with the same id.
async function reconnect({ client, topic }) {
  let stop = false;
  createInterface({ input: process.stdin }).on("close", () => (stop = true));
  let answered = 0;
  const work = async (worker) => {
    for (let i = 0; !stop; i++) {
      const id = `${worker}-${i}`;
      for (;;) {
        try {
          const [, outcome] = await client.call("JOB.SUBMIT", topic, id, "ID", id);
          assert.ok(outcome === "accepted" || outcome === "duplicate", outcome);
          break;
        } catch (error) {
          if (error instanceof assert.AssertionError || /^(INVALID|CONFLICT|ERR)/.test(error.message)) throw error;
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }
      answered++;
      process.stdout.write(`${id}\n`);
    }
  };
  await Promise.all(Array.from({ length: 10 }, (_, worker) => work(worker)));
  assert.ok(answered > 0);
}

const SCENARIOS = { life, pipelines, binary, errors, pubsub, transactions, blocking, auth, resp3, reconnect };

const [name, scenario, port, token] = process.argv.slice(2);
const { connect } = await CLIENTS[name]();
const options = { port: Number(port), token, name: "e2e", protocol: name.endsWith("3") ? 3 : 2 };
const client = await connect(options);
await SCENARIOS[scenario]({ client, connect, options, topic: `${name}-${scenario}` });
client.close();
process.exit(0);
