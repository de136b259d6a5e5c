import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { HANG_MS } from "./limits.ts";
import { signalProcess } from "./signals.ts";

const CLIENT = join(packageRoot(), "dist", "index.js");

/** A directory of one test that runs trainers: its trainers note there which processes they are. */
export interface RunDirectory {
  readonly path: string;
  /** Writes a script; Node's gets `connect` and `note`, which tells that this process runs. */
  script(name: string, lines: string): Promise<string>;
  /** Writes an executable into `bin` and answers that directory. */
  program(name: string, lines: string): Promise<string>;
  /** Pids that were noted under names that match. */
  noted(pattern?: RegExp): Promise<number[]>;
  /** Waits until so many have been noted. */
  untilNoted(count: number, pattern?: RegExp): Promise<number[]>;
  /** Waits until none of all that were noted runs; there must be some. */
  untilGone(): Promise<void>;
  /** Ends what was noted and still runs, and removes the directory. */
  remove(): Promise<void>;
}

/** Waits as long as a hang. */
const WAIT = { timeout: HANG_MS, interval: 50 };

/** Makes such a directory. */
export async function makeRunDirectory(): Promise<RunDirectory> {
  const path = await mkdtemp(join(tmpdir(), "pserver-run-"));
  const bin = join(path, "bin");
  const pids = join(path, "pids");
  await mkdir(bin);
  await mkdir(pids);
  const noted = async (pattern = /./): Promise<number[]> => {
    const names = (await readdir(pids)).filter((name) => pattern.test(name));
    const texts = await Promise.all(names.map((name) => readFile(join(pids, name), "utf8")));
    return texts.map(Number).filter((pid) => pid > 0);
  };
  const prelude = [
    `import { writeFileSync } from "node:fs";`,
    `import { connect } from ${JSON.stringify(CLIENT)};`,
    "const { PSERVER_RANK: RANK, PSERVER_TRAINER: trainer, PSERVER_JOB: job } = process.env;",
    `const note = (name, pid) => writeFileSync(${JSON.stringify(pids)} + "/" + name + "-" + pid, String(pid));`,
    `note("trainer-" + RANK, process.pid);`,
  ];
  return {
    path,
    async script(name, lines) {
      const script = join(path, name);
      await writeFile(script, name.endsWith(".mjs") ? [...prelude, lines].join("\n") : lines);
      return script;
    },
    async program(name, lines) {
      await writeFile(join(bin, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
      return bin;
    },
    noted,
    async untilNoted(count, pattern) {
      await vi.waitFor(async () => expect((await noted(pattern)).length).toBe(count), WAIT);
      return await noted(pattern);
    },
    async untilGone() {
      const all = await noted();
      expect(all.length).toBeGreaterThan(0);
      await vi.waitFor(() => expect(all.filter((pid) => identifyProcess(pid))).toEqual([]), WAIT);
    },
    async remove() {
      // Only a test that fails has left any.
      for (const pid of (await noted()).filter((each) => identifyProcess(each))) {
        signalProcess(pid, "SIGKILL");
      }
      await rm(path, { recursive: true, force: true });
    },
  };
}
