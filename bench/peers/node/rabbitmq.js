// RabbitMQ: a durable queue for each delay, with a TTL and a dead-letter exchange in front of one work queue; persistent messages
// on confirm channels; consumers with a prefetch that ack many at once. A queue for each delay, because a message with a
// short TTL of its own would wait behind one with a long TTL.
"use strict";
const amqp = require("amqplib");

const CONSUMERS = 2;
const PREFETCH = 2000;
const ACK_EVERY = 100;
const ACK_WITHIN_MS = 5;
const WORK = "bench-work";

async function consumeOne(connection, onReceived, onDone) {
  const channel = await connection.createChannel();
  await channel.prefetch(PREFETCH);
  let last = null;
  let unsettled = 0;
  const settle = () => {
    if (!last) return;
    channel.ack(last, true);
    for (; unsettled > 0; unsettled--) onDone();
    last = null;
  };
  await channel.consume(WORK, (message) => {
    onReceived(parseInt(message.content.toString("latin1", 0, 16), 10));
    last = message;
    if (++unsettled >= ACK_EVERY) settle();
  });
  setInterval(settle, ACK_WITHIN_MS);
}

async function connect({ host, port, connections }) {
  const open = () => amqp.connect({ protocol: "amqp", hostname: host, port, username: "guest", password: "guest" });
  const connection = await open();
  const channels = await Promise.all(Array.from({ length: connections }, () => connection.createConfirmChannel()));
  await channels[0].assertQueue(WORK, { durable: true });
  const queues = new Map();
  const queueFor = (delayMs) => {
    if (!queues.has(delayMs)) {
      const name = `bench-${delayMs}`;
      const options = { durable: true, messageTtl: delayMs, deadLetterExchange: "", deadLetterRoutingKey: WORK };
      queues.set(delayMs, channels[0].assertQueue(name, options).then(() => name));
    }
    return queues.get(delayMs);
  };
  let next = 0;
  return {
    expectedSubmitPerS: 8000,
    wholeSeconds: true,
    async submit(jobs) {
      const channel = channels[next++ % channels.length];
      for (const job of jobs) {
        channel.sendToQueue(await queueFor(job.delayMs), Buffer.from(job.payload), { persistent: true });
      }
      await channel.waitForConfirms();
    },
    async consume(onReceived, onDone) {
      for (let i = 0; i < CONSUMERS; i++) await consumeOne(await open(), onReceived, onDone);
    },
    // Acks have no answer; one that has, on the same broker, comes after them.
    settled: async () => void (await channels[0].checkQueue(WORK)),
  };
}

module.exports = { connect };
