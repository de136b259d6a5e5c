// Proves that a store directory has one holder: with real files, and with claims of processes that
// have ended, whose pids are used by others, or that live. Concurrent contenders of different
// processes are played by claims that appear under another live pid (the parent of this process).
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { lockStore } from "../../src/broker/store-lock.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";

/** Above the largest pid that Linux can be set to give. */
const NO_PID = 2 ** 22 + 1;

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "pserver-lock-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("lockStore", () => {
  test("makes the directory, and frees it when released", async () => {
    const store = join(dir, "deep", "store");
    const lock = await lockStore(store);
    expect(lock.dir).toBe(store);
    expect(await readdir(join(store, "lock"))).toHaveLength(1);
    await lock.release();
    await lock.release();
    expect(await readdir(join(store, "lock"))).toEqual([]);
    await (await lockStore(store)).release();
  });

  test("refuses the process that holds it already, naming pid and directory", async () => {
    const lock = await lockStore(dir);
    await expect(lockStore(dir)).rejects.toMatchObject({
      code: "STORE_IN_USE",
      details: { pid: process.pid, dir },
      message: expect.stringContaining(String(process.pid)),
    });
    // The attempt that was refused took nothing away.
    await expect(lockStore(dir)).rejects.toMatchObject({ code: "STORE_IN_USE" });
    await lock.release();
  });

  test("lets one of many concurrent calls through", async () => {
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => lockStore(dir)));
    expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
  });

  test("refuses while another process lives, and leaves no claim of its own", async () => {
    const name = await claimFor(process.ppid);
    await expect(lockStore(dir)).rejects.toMatchObject({
      code: "STORE_IN_USE",
      details: { pid: process.ppid },
    });
    expect(await readdir(join(dir, "lock"))).toEqual([name]);
  });

  test("refuses while another process lives on a system that tells no births", async () => {
    vi.resetModules();
    vi.doMock("../../src/system/process-identity.ts", () => ({
      identifyProcess: (pid: number) => ({ pid, birth: "unknown" }),
      isAlive: () => true,
    }));
    onTestFinished(() => {
      vi.doUnmock("../../src/system/process-identity.ts");
      vi.resetModules();
    });
    const { lockStore: lockThere } = await import("../../src/broker/store-lock.ts");
    await claim(`${process.ppid}.unknown`);
    await expect(lockThere(dir)).rejects.toMatchObject({
      code: "STORE_IN_USE",
      details: { pid: process.ppid },
    });
  });

  test("takes over from a process that has ended", async () => {
    await claim(`${NO_PID}.abcdef01-1`);
    const lock = await lockStore(dir);
    expect(await readdir(join(dir, "lock"))).toHaveLength(1);
    await lock.release();
  });

  test("takes over when the pid is now another process's, or this one's after a reboot", async () => {
    await claim(`${process.ppid}.abcdef01-1`);
    await claim(`${process.pid}.abcdef01-1`);
    await (await lockStore(dir)).release();
  });

  test("stays locked for a second holder, and frees both", async () => {
    const lock = await lockStore(dir);
    await lock.addHolder(process.ppid);
    expect(await readdir(join(dir, "lock"))).toHaveLength(2);
    await lock.addHolder(NO_PID);
    expect(await readdir(join(dir, "lock"))).toHaveLength(2);
    await lock.release();
    expect(await readdir(join(dir, "lock"))).toEqual([]);
  });

  test("says which path cannot be made", async () => {
    await writeFile(join(dir, "file"), "");
    await expect(lockStore(join(dir, "file", "store"))).rejects.toMatchObject({
      code: "IO",
      details: { errno: "ENOTDIR" },
    });
  });
});

async function claim(name: string): Promise<void> {
  await mkdir(join(dir, "lock"), { recursive: true });
  await writeFile(join(dir, "lock", name), "");
}

async function claimFor(pid: number): Promise<string> {
  const holder = identifyProcess(pid);
  if (holder === undefined) throw new Error(`process ${pid} is gone`);
  const name = `${holder.pid}.${holder.birth}`;
  await claim(name);
  return name;
}
