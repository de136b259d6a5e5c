// Proves that what takes long to load and is seldom needed is not loaded when a command or a host starts:
// follows the imports of their entry points, those of types left out.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../src/broker/package-root.ts";

const IMPORT = /^(?:import|export) (?!type )([^;]*? from )?"([^"]+)";/gm;

/** Packages that are imported by a module, or by the modules that it imports. */
async function packagesOf(entry: string): Promise<Set<string>> {
  const packages = new Set<string>();
  const seen = new Set([entry]);
  for (const path of seen) {
    const text = await readFile(path, "utf8");
    for (const [, , target = ""] of text.matchAll(IMPORT)) {
      if (target.startsWith(".")) seen.add(join(path, "..", target));
      else packages.add(target);
    }
  }
  return packages;
}

test.each(["cli/pserver.ts", "actors/host/host.ts", "actors/host/host-worker.ts"])(
  "of %s",
  async (entry) => {
    const packages = await packagesOf(join(packageRoot(), "src", entry));
    expect(packages).toContain("@nats-io/transport-node");
    for (const late of ["h5wasm", "etcd3", "protobufjs/light.js"]) {
      expect(packages).not.toContain(late);
    }
  },
);
