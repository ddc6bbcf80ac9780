// The calls of scenarios.mjs through node-redis, in RESP2 or RESP3.
import { createClient, RESP_TYPES } from "redis";

export async function connect({ port, token, name, protocol }) {
  const client = createClient({
    socket: { host: "127.0.0.1", port, reconnectStrategy: () => 20 },
    password: token,
    name,
    RESP: protocol,
  });
  client.on("error", () => {}); // the calls tell
  // It tries to connect again and again, also where the server refuses its token.
  const refused = new Promise((_, reject) => client.once("error", reject));
  try {
    await Promise.race([client.connect(), refused]);
  } catch (error) {
    client.destroy();
    throw error;
  }
  return wrap(client);
}

function wrap(client) {
  return {
    call: (...words) => client.sendCommand(words.map(String)),
    callBytes: (...words) => client.sendCommand(words, { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }),
    pipeline: (commands) =>
      Promise.all(commands.map((words) => client.sendCommand(words.map(String)).catch((error) => error))),
    transaction: () => client.multi().ping().exec(),
    subscribe: () => client.subscribe("x", () => {}),
    async duplicate() {
      const other = client.duplicate();
      other.on("error", () => {});
      await other.connect();
      return wrap(other);
    },
    close: () => client.destroy(),
  };
}
