// Proves that what takes long to load and is seldom needed is not loaded when a command or a host starts:
// follows the imports of their entry points, those of types left out.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../src/broker/broker-config.ts";

const IMPORT = /^(?:import|export) (?!type )([^;]*? from )?"([^"]+)";/gm;

/** What a module imports, types left out. */
async function importsOf(path: string): Promise<string[]> {
  const text = await readFile(path, "utf8");
  return [...text.matchAll(IMPORT)].map(([, , target = ""]) => target);
}

/** Packages that are imported by a module, or by the modules that it imports. */
async function packagesOf(entry: string): Promise<Set<string>> {
  const packages = new Set<string>();
  const seen = new Set([entry]);
  for (const path of seen) {
    for (const target of await importsOf(path)) {
      if (target.startsWith(".")) seen.add(join(path, "..", target));
      else packages.add(target);
    }
  }
  return packages;
}

test.each(["cli/run-cli.ts", "actors/host/start-host.ts", "actors/host/host-worker.ts"])(
  "of %s",
  async (entry) => {
    const packages = await packagesOf(join(packageRoot(), "src", entry));
    expect(packages).toContain("@nats-io/transport-node");
    for (const late of ["etcd3", "protobufjs/light.js"]) {
      expect(packages).not.toContain(late);
    }
  },
);

test.each(["pserver", "legion"])(
  "%s loads nothing before it has checked Node.js, which may be too old for the rest",
  async (program) => {
    const directory = join(packageRoot(), "src", "cli");
    expect(await importsOf(join(directory, `${program}.ts`))).toEqual(["./node-version.ts"]);
    expect(await importsOf(join(directory, "node-version.ts"))).toEqual([]);
  },
);
