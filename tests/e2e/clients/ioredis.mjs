// The calls of scenarios.mjs through ioredis, which speaks RESP2.
import Redis from "ioredis";

export async function connect({ port, token, name }) {
  const client = new Redis({
    port,
    password: token,
    connectionName: name,
    lazyConnect: true,
    maxRetriesPerRequest: null,
    retryStrategy: () => 20,
  });
  client.on("error", () => {}); // the calls tell
  // connect() says only that the connection was closed; the reason is an event.
  const refused = new Promise((_, reject) => client.once("error", reject));
  try {
    await Promise.race([client.connect().catch(() => refused), refused]);
  } catch (error) {
    client.disconnect();
    throw error;
  }
  return wrap(client);
}

function wrap(client) {
  return {
    call: (...words) => client.call(...words.map(String)),
    callBytes: (command, ...words) => client.callBuffer(command, ...words),
    async pipeline(commands) {
      const replies = await client.pipeline(commands.map((words) => ["call", ...words.map(String)])).exec();
      return replies.map(([error, reply]) => error ?? reply);
    },
    transaction: () => client.multi().call("PING").exec(),
    subscribe: () => client.subscribe("x"),
    async duplicate() {
      const other = client.duplicate();
      other.on("error", () => {});
      await other.connect();
      return wrap(other);
    },
    close: () => client.disconnect(),
  };
}
