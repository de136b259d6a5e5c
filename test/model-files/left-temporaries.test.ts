// Proves that the temporary files of processes that have died go with the next write into their directory and
// when a host starts, and that those of processes that live, here or elsewhere, stay.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { FILE_MODES, writeFileAtomically } from "../../src/model-files/atomic-write.ts";
import {
  isTemporaryName,
  removeLeftTemporaries,
  temporaryNameBeside,
} from "../../src/model-files/temporary-files.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { ALL_PATHS, sampleTensor, save, withDirectory } from "./sample-model.ts";

/** The name of a temporary file of this machine, written by another process. */
function nameOf({ pid, birth }: { readonly pid: number; readonly birth: string }): string {
  const [machine = "", , , unique = ""] = basename(temporaryNameBeside("m"))
    .slice(".pserver-save-".length)
    .split(".");
  return `.pserver-save-${machine}.${pid}.${birth}.${unique}.tmp`;
}

/** The identity of a process that has ended. */
async function endedProcess(): Promise<{ readonly pid: number; readonly birth: string }> {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  await once(child, "spawn");
  const identity = identifyProcess(child.pid ?? 0);
  child.kill("SIGKILL");
  await once(child, "close");
  if (identity === undefined) throw new Error("the process ended by itself");
  return identity;
}

describe.each(ALL_PATHS)("a save as %s", (path) => {
  test("removes what a process that was killed has left", async () => {
    await withDirectory(async (directory) => {
      const owner = await endedProcess();
      await writeFile(join(directory, nameOf(owner)), "half a model");
      await mkdir(join(directory, `${nameOf(owner).slice(0, -20)}${"0".repeat(16)}.tmp`));
      expect((await readdir(directory)).filter(isTemporaryName)).toHaveLength(2);
      await save(directory, path, [sampleTensor("w", "float32", [4])]);
      expect(await readdir(directory)).toEqual([path]);
    });
  });
});

test("any file that is written whole takes them along", async () => {
  await withDirectory(async (directory) => {
    await writeFile(join(directory, nameOf(await endedProcess())), "half");
    const content = (async function* () {
      yield new Uint8Array(1);
    })();
    await writeFileAtomically(join(directory, "w.npy"), content, FILE_MODES.byUmask);
    expect(await readdir(directory)).toEqual(["w.npy"]);
  });
});

test("what a living process writes stays, also under the pid of one that has ended", async () => {
  await withDirectory(async (directory) => {
    const own = basename(temporaryNameBeside(join(directory, "m")));
    const parent = identifyProcess(process.ppid);
    const reused = nameOf({ pid: process.ppid, birth: "abcdef01-1" });
    const kept = [own, nameOf(parent as NonNullable<typeof parent>)];
    for (const name of [...kept, reused]) await writeFile(join(directory, name), "half");
    await removeLeftTemporaries(directory);
    expect((await readdir(directory)).sort()).toEqual(kept.sort());
  });
});

test("what another machine or container writes stays, and so does what only looks like it", async () => {
  await withDirectory(async (directory) => {
    const ended = nameOf(await endedProcess());
    const kept = [ended.replace(/save-[0-9a-f]{8}/, "save-00000000"), `x${ended}`, `${ended}.npz`];
    for (const name of kept) await writeFile(join(directory, name), "half");
    await removeLeftTemporaries(directory, true);
    expect((await readdir(directory)).sort()).toEqual(kept.sort());
  });
});

test("those in directories below go on demand, and an absent directory has none", async () => {
  await withDirectory(async (directory) => {
    const below = join(directory, "runs", "a");
    await mkdir(below, { recursive: true });
    await writeFile(join(below, nameOf(await endedProcess())), "half");
    await removeLeftTemporaries(directory);
    expect(await readdir(below)).toHaveLength(1);
    await removeLeftTemporaries(directory, true);
    expect(await readdir(below)).toEqual([]);
    await removeLeftTemporaries(join(directory, "absent"), true);
  });
});
