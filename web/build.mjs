// Type-checks and bundles the dashboard: node build.mjs --out DIR. Run `npm ci` first.
// DIR then has index.html, app-HASH.js, app-HASH.css and favicon.svg, and nothing else.
import {execFileSync} from "node:child_process";
import {cpSync, mkdirSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {basename, dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";
import {gzipSync} from "node:zlib";
import {build} from "esbuild";

const kGzipLimit = 120_000;  // bytes of all files together
const here = dirname(fileURLToPath(import.meta.url));

function outFolder() {
  const at = process.argv.indexOf("--out");
  if (at < 0 || !process.argv[at + 1]) throw new Error("usage: node build.mjs --out DIR");
  return resolve(process.argv[at + 1]);
}

function checkTypes() {
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "--noEmit", "-p", here], {stdio: "inherit"});
}

async function bundle(out) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: {app: "src/main.tsx"},
    entryNames: "[name]-[hash]",
    outdir: out,
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2021", "chrome100", "firefox100", "safari15.4"],
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  return Object.keys(result.metafile.outputs).map((path) => basename(path));
}

function writePage(out, names) {
  const template = readFileSync(join(here, "src/index.html"), "utf8");
  const named = (end) => names.find((name) => name.endsWith(end));
  writeFileSync(join(out, "index.html"), template.replace("app.js", named(".js")).replace("app.css", named(".css")));
  cpSync(join(here, "src/favicon.svg"), join(out, "favicon.svg"));
}

function checkSize(out, names) {
  const all = [...names, "index.html", "favicon.svg"];
  const bytes = all.map((name) => gzipSync(readFileSync(join(out, name)), {level: 9}).length);
  const total = bytes.reduce((sum, each) => sum + each, 0);
  console.log(`${all.length} files, ${total} bytes gzip`);
  if (total > kGzipLimit) throw new Error(`the dashboard has ${total} bytes gzip: the limit is ${kGzipLimit}`);
}

const out = outFolder();
checkTypes();
rmSync(out, {recursive: true, force: true});
mkdirSync(out, {recursive: true});
const names = await bundle(out);
writePage(out, names);
checkSize(out, names);
