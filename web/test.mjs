// Bundles test/*.test.ts and runs them with node's own test runner.
import {spawnSync} from "node:child_process";
import {mkdtempSync, readdirSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tocsin-web-test-"));
try {
  const tests = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
  await build({
    absWorkingDir: here,
    entryPoints: tests.map((name) => join("test", name)),
    outdir: folder,
    outExtension: {".js": ".mjs"},
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
  const built = readdirSync(folder).filter((name) => name.endsWith(".mjs")).map((name) => join(folder, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...built], {stdio: "inherit"}).status ?? 1;
} finally {
  rmSync(folder, {recursive: true, force: true});
}
