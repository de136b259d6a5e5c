// Proves what a start of a broker leaves in its store directory, who may read it, what it reports of the log,
// and that an abort or a failure at each of its moments ends it and frees the store.
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { brokerMemoryOf } from "../../src/broker/broker-memory.ts";
import { startBroker } from "../../src/broker/index.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { HANG_MS } from "../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

let dir: string;
let storeDir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "pserver-start-broker-"));
  storeDir = join(dir, "store");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A player of nats-server that runs these lines. */
async function player(lines: string): Promise<{ path: string; version: string }> {
  const path = join(dir, "nats-server");
  await writeFile(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  return { path, version: "2.12.0" };
}

describe("the store directory", () => {
  test("holds data, a configuration and a log after a stop, and no ports and claims", async () => {
    const broker = await startBroker({ storeDir: relative(process.cwd(), storeDir), port: 0 });
    onTestFinished(() => broker.kill());
    expect(broker.storeDir).toBe(storeDir);
    expect(broker.port).not.toBe(4222);
    await broker.stop();
    expect((await readdir(storeDir)).sort()).toEqual([
      "broker.conf",
      "broker.log",
      "jetstream",
      "lock",
    ]);
    expect(await readdir(join(storeDir, "lock"))).toEqual([]);
  });

  test("bounds what the broker may keep in files", async () => {
    const broker = await startBroker({ storeDir });
    onTestFinished(() => broker.kill());
    expect(await readFile(join(storeDir, "broker.conf"), "utf8")).toMatch(/^ {2}max_file: [1-9]/m);
  });

  test("has a configuration that only this user may read, whatever permissions an older one had", async () => {
    const config = join(storeDir, "broker.conf");
    const modes: number[] = [];
    for (let start = 0; start < 2; start++) {
      const broker = await startBroker({ storeDir });
      onTestFinished(() => broker.kill());
      modes.push((await stat(config)).mode & 0o777);
      await broker.stop();
      await rm(config);
      await writeFile(config, "old", { mode: 0o644 });
    }
    expect(modes).toEqual([0o600, 0o600]);
  });

  test("is free after a program that cannot be started, and after a path that is refused", async () => {
    const program = { path: join(dir, "none"), version: "2.12.0" };
    await expect(startBroker({ storeDir, program })).rejects.toMatchObject({ code: "NO_BROKER" });
    expect(await readdir(join(storeDir, "lock"))).toEqual([]);
    const configFile = join(dir, 'a"b');
    await expect(startBroker({ storeDir, configFile })).rejects.toMatchObject({ code: "BAD_PATH" });
    expect(await readdir(join(storeDir, "lock"))).toEqual([]);
  });
});

describe("the broker's memory is limited", () => {
  test("to a quarter of what there is", async () => {
    vi.stubEnv("GOMEMLIMIT", undefined);
    onTestFinished(() => void vi.unstubAllEnvs());
    const broker = await startBroker({ storeDir });
    onTestFinished(() => broker.kill());
    const { limitBytes, totalBytes = 0 } = brokerMemoryOf(broker.pid) ?? {};
    expect(limitBytes).toBe(Math.floor(totalBytes / 4));
  });

  test("to what is given, and the environment of this process stays as it is", async () => {
    vi.stubEnv("GOMEMLIMIT", "3GiB");
    onTestFinished(() => void vi.unstubAllEnvs());
    const broker = await startBroker({ storeDir, memoryBytes: 200 * 1024 ** 2 });
    onTestFinished(() => broker.kill());
    expect(brokerMemoryOf(broker.pid)?.limitBytes).toBe(200 * 1024 ** 2);
    expect(process.env["GOMEMLIMIT"]).toBe("3GiB");
  });
});

test("each line of the log is handed on, and one that tells of a stuck store is reported", async () => {
  const failed = "[ERR] JetStream failed to store a msg on stream";
  const lines = [`${failed}: no space left on device`, `${failed}: no message cache`, "end"];
  const program = await player(`printf '%s\\n' '${lines.join("' '")}' >&2`);
  const log: string[] = [];
  let stuck = 0;
  const onStoreStuck = (): void => {
    stuck += 1;
  };
  const options = { storeDir, program, onLog: (line: string) => log.push(line), onStoreStuck };
  await expect(startBroker(options)).rejects.toMatchObject({ code: "NO_BROKER" });
  expect([log, stuck]).toEqual([lines, 1]);
});

describe("an abort", () => {
  test("before the start makes nothing", async () => {
    const program = await player("exec sleep 600");
    const signal = AbortSignal.abort();
    await expect(startBroker({ storeDir, program, signal })).rejects.toMatchObject({
      code: "ABORTED",
      details: { storeDir },
    });
    expect(existsSync(storeDir)).toBe(false);
  });

  test("ends the search for a program", async () => {
    const reached = join(dir, "reached");
    const { path } = await player(
      `echo $$ >${reached}.new; mv ${reached}.new ${reached}; exec sleep 600`,
    );
    vi.stubEnv("PSERVER_NATS_SERVER", path);
    onTestFinished(() => void vi.unstubAllEnvs());
    const aborting = new AbortController();
    const starting = startBroker({ storeDir, signal: aborting.signal });
    starting.catch(() => {});
    await vi.waitFor(() => expect(existsSync(reached)).toBe(true), WAIT);
    aborting.abort();
    await expect(starting).rejects.toMatchObject({ code: "ABORTED" });
    const pid = Number(await readFile(reached, "utf8"));
    await vi.waitFor(() => expect(identifyProcess(pid)).toBeUndefined(), WAIT);
  });

  test("ends the wait for the greeting, and the broker that does not greet", async () => {
    let dialled: () => void = () => {};
    const isDialled = new Promise<void>((resolve) => {
      dialled = resolve;
    });
    const silent = createServer(() => dialled());
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void silent.close());
    const address = silent.address();
    const port = typeof address === "object" ? address?.port : 0;
    const ports = join(storeDir, "ports", "nats.ports");
    const program = await player(
      `echo '{"nats":["nats://127.0.0.1:${port}"]}' >${ports}; exec sleep 600`,
    );
    const aborting = new AbortController();
    const starting = startBroker({ storeDir, program, signal: aborting.signal });
    starting.catch(() => {});
    await isDialled;
    aborting.abort();
    await expect(starting).rejects.toMatchObject({ code: "ABORTED" });
    expect(await readdir(join(storeDir, "lock"))).toEqual([]);
  });
});
