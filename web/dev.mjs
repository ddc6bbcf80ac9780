// A server for work on the dashboard: npm run dev [-- --api http://127.0.0.1:7420 --port 7480 --dist dist].
// Serves DIST at /ui/ with the headers of the real server, and hands everything else to the API.
import {readFileSync} from "node:fs";
import {createServer, request} from "node:http";
import {extname, join, normalize} from "node:path";

const kTypes = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"};
const kPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:";

function option(name, fallback) {
  const at = process.argv.indexOf("--" + name);
  return at < 0 ? fallback : process.argv[at + 1];
}

const api = new URL(option("api", "http://127.0.0.1:7420"));
const port = Number(option("port", "7480"));
const dist = option("dist", "dist");

function serveFile(path, response) {
  const name = normalize(path.replace(/^\/ui\/?/, "") || "index.html");
  try {
    const body = readFileSync(join(dist, name));
    response.writeHead(200, {"Content-Type": kTypes[extname(name)] ?? "application/octet-stream",
                             "Content-Security-Policy": kPolicy, "Cache-Control": "no-store"});
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
}

function forward(incoming, response) {
  const headers = {...incoming.headers, host: api.host};
  if (headers.origin) headers.origin = api.origin;
  const outgoing = request(new URL(incoming.url, api), {method: incoming.method, headers}, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  outgoing.on("error", () => response.headersSent ? response.destroy() : response.writeHead(502).end());
  response.on("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
}

createServer((incoming, response) => {
  const path = new URL(incoming.url, "http://localhost").pathname;
  if (path === "/") return response.writeHead(302, {Location: "/ui/"}).end();
  if (path === "/ui" || path.startsWith("/ui/")) return serveFile(path, response);
  forward(incoming, response);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/ui/`));
