// Proves the launcher with real brokers: what is acknowledged is there after a stop and after a
// crash on the same store and port, two brokers never share a store, each failed start says why
// in the broker's own words and frees the store, and a broker dies with its parent even when that
// is killed. Also that set-up and launcher rate versions alike.
import { execFile, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { packageRoot, readBrokerGreeting } from "../../src/broker/broker-config.ts";
import { findBroker, startBroker } from "../../src/broker/index.ts";
import { checkBrokerVersion } from "../../src/protocol/broker-version.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { startTestBroker, type TestBroker } from "../support/broker.ts";
import { HANG_MS } from "../support/limits.ts";

const run = promisify(execFile);

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "pserver-launch-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe("startBroker", () => {
  test("starts on a free port with the settings of nats.conf, and ends in order", async () => {
    const broker = await startBroker({ storeDir: dir });
    onTestFinished(() => broker.kill());
    const info = await readBrokerGreeting("127.0.0.1", broker.port, HANG_MS);
    expect(info).toEqual({
      version: broker.version,
      jetstream: true,
      maxPayloadBytes: 8 * 2 ** 20,
    });
    expect(broker.url).toBe(`nats://127.0.0.1:${broker.port}`);
    expect(identifyProcess(broker.pid)).toBeDefined();
    expect((await stat(join(dir, "jetstream"))).isDirectory()).toBe(true);
    // The store stays locked for the broker if this process dies.
    const claims = await readdir(join(dir, "lock"));
    expect(claims.map((name) => Number(name.split(".")[0])).sort()).toEqual(
      [process.pid, broker.pid].sort(),
    );

    await broker.stop();
    expect(await broker.exited).toMatchObject({ signal: null });
    expect(identifyProcess(broker.pid)).toBeUndefined();
    expect(await readdir(join(dir, "lock"))).toEqual([]);
    // Both do nothing once it has ended.
    await broker.stop();
    await broker.kill();
  });

  test("keeps acknowledged messages over a stop and a crash, on the same port", async () => {
    const broker = await startTestBroker();
    onTestFinished(() => broker.remove());
    await publish(broker, 3);
    await broker.stop();
    await broker.start();
    expect(await stored(broker)).toBe(3);
    await publish(broker, 4);
    await broker.kill();
    expect(await broker.current.exited).toEqual({ code: null, signal: "SIGKILL" });
    await broker.start();
    expect(await stored(broker)).toBe(7);
    expect(broker.current.url).toBe(broker.url);
  });

  test("takes further settings, for JetStream and at the end", async () => {
    const broker = await startTestBroker({
      jetstreamConfig: "max_file: 64MB",
      extraConfig: "max_payload: 1MB",
    });
    onTestFinished(() => broker.remove());
    const info = await readBrokerGreeting("127.0.0.1", broker.port, HANG_MS);
    expect(info.maxPayloadBytes).toBe(2 ** 20);
    const connection = await connect({ servers: broker.url });
    const manager = await jetstreamManager(connection);
    await expect(
      manager.streams.add({ name: "BIG", subjects: ["big"], max_bytes: 128 * 2 ** 20 }),
    ).rejects.toThrow(/insufficient storage/);
    await connection.close();
  });

  test("syncs each record where that is asked for", async () => {
    const log: string[] = [];
    const options = {
      storeDir: dir,
      durable: true,
      extraConfig: 'http: "127.0.0.1:-1"',
      onLog: (line: string) => log.push(line),
    };
    const broker = await startBroker(options);
    onTestFinished(() => broker.kill());
    const monitor = /http monitor on (\S+)/.exec(log.join("\n"))?.[1];
    const state = await (await fetch(`http://${monitor}/jsz`)).json();
    expect(state).toMatchObject({ config: { sync_always: true } });
  });

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "[::1]"],
    ["::", "[::1]"],
  ])("listens on %s, and is reached at %s", async (host, reached) => {
    const broker = await startBroker({ storeDir: dir, host });
    onTestFinished(() => broker.kill());
    expect(broker.url).toBe(`nats://${reached}:${broker.port}`);
    const connection = await connect({ servers: broker.url });
    await connection.close();
  });

  test("reads its own port, whatever an earlier one has left behind", async () => {
    await mkdir(join(dir, "ports"));
    await writeFile(join(dir, "ports", "old.ports"), '{"nats":["nats://127.0.0.1:1"]}');
    const broker = await startBroker({ storeDir: dir });
    onTestFinished(() => broker.kill());
    expect((await readBrokerGreeting("127.0.0.1", broker.port, HANG_MS)).jetstream).toBe(true);
  });

  test("keeps the end of the log of a start that failed", async () => {
    const lines = Array.from({ length: 12 }, (_, i) => `line ${i}`);
    const program = {
      path: await script(`printf '${lines.join("\\n")}\\n' >&2`),
      version: "2.12.0",
    };
    const error = await startBroker({ storeDir: join(dir, "store"), program }).catch((e) => e);
    expect(error.details.log).toEqual(lines.slice(-8));
    expect(error.message).toContain("line 4 | line 5");
  });

  test("takes a configuration of the user's, and hands its log on", async () => {
    const configFile = join(dir, "mine.conf");
    await writeFile(configFile, "jetstream { max_file: 32MB }\nmax_payload: 2MB\n");
    const log: string[] = [];
    const broker = await startBroker({
      storeDir: join(dir, "store"),
      configFile,
      onLog: (line) => log.push(line),
    });
    onTestFinished(() => broker.kill());
    const info = await readBrokerGreeting("127.0.0.1", broker.port, HANG_MS);
    expect(info.maxPayloadBytes).toBe(2 * 2 ** 20);
    expect(log.join("\n")).toContain(join(dir, "store", "jetstream"));
  });

  test("refuses a store that a broker uses, whose process it names", async () => {
    const broker = await startTestBroker();
    onTestFinished(() => broker.remove());
    await expect(startBroker({ storeDir: broker.storeDir })).rejects.toMatchObject({
      code: "STORE_IN_USE",
      details: { pid: process.pid, dir: broker.storeDir },
    });
    expect(await stored(broker)).toBe(0);
  });

  test.each([
    {
      what: "a setting that does not exist",
      options: { extraConfig: "no_such_setting: 1" },
      message: /unknown field "no_such_setting"/,
    },
    {
      what: "text that is no configuration",
      options: { extraConfig: "jetstream {" },
      message: /Parse error/i,
    },
    {
      what: "a missing file",
      options: { configFile: "/nonexistent/nats.conf" },
      message: /no such file/,
    },
    {
      what: "a file that names a store of its own",
      options: { configFile: join(packageRoot(), "nats-durable.conf") },
      message: /Duplicate 'store_dir'/,
    },
  ])("fails on $what in the broker's words, and frees the store", async ({ options, message }) => {
    const storeDir = join(dir, "store");
    await expect(startBroker({ storeDir, ...options })).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringMatching(message),
    });
    const broker = await startBroker({ storeDir });
    await broker.stop();
  });

  test("names the process that holds the port, and frees the store", async () => {
    const other = await startTestBroker();
    onTestFinished(() => other.remove());
    const { port } = other;
    const { pid } = other.current;
    const error = await startBroker({ storeDir: dir, port }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "ADDRESS_IN_USE", details: { port, pid } });
    expect(error.message).toBe(
      `expected 127.0.0.1:${port} to be free for the broker; process ${pid} (nats-server) listens there`,
    );
    expect(await readdir(join(dir, "lock"))).toEqual([]);
  });

  test("fails on a store directory that is a file, and one the broker cannot use", async () => {
    await writeFile(join(dir, "file"), "");
    await expect(startBroker({ storeDir: join(dir, "file") })).rejects.toMatchObject({
      code: "IO",
    });
    await writeFile(join(dir, "jetstream"), "in the way");
    await expect(startBroker({ storeDir: dir })).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringContaining("directory"),
    });
  });

  test("refuses a configuration without JetStream", async () => {
    const configFile = join(dir, "plain.conf");
    await writeFile(configFile, "max_payload: 1MB\n");
    const storeDir = join(dir, "store");
    await expect(startBroker({ storeDir, configFile })).rejects.toMatchObject({
      code: "NO_JETSTREAM",
    });
    expect(await readdir(join(storeDir, "lock"))).toEqual([]);
  });

  test("ends a program that never gets ready, when time is up or the caller aborts", async () => {
    const pidFile = join(dir, "pid");
    const path = await script(`echo $$ >${pidFile}\nexec sleep 600`);
    const program = { path, version: "2.12.0" };
    const options = { storeDir: join(dir, "store"), program };
    await expect(startBroker({ ...options, startTimeoutMs: 50 })).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringContaining("was not ready in 50 ms"),
    });
    const aborting = new AbortController();
    const starting = startBroker({ ...options, signal: aborting.signal });
    await rm(pidFile, { force: true });
    const startedAgain = vi.waitFor(async () => Number(await readFile(pidFile, "utf8")), {
      timeout: HANG_MS,
    });
    startedAgain.then(() => aborting.abort()).catch(() => {});
    await expect(starting).rejects.toMatchObject({ code: "ABORTED" });
    expect(identifyProcess(await startedAgain)).toBeUndefined();
    expect(await readdir(join(dir, "store", "lock"))).toEqual([]);
  });

  test("leaves no broker behind when the process that started it is killed", async () => {
    const storeDir = join(dir, "store");
    const starter = `
      const { startBroker } = await import(process.argv[1]);
      const broker = await startBroker({ storeDir: process.argv[2] });
      process.stdout.write(broker.pid + "\\n");`;
    const module = join(packageRoot(), "build/programs/src/broker/index.js");
    const parent = spawn(
      process.execPath,
      ["--input-type=module", "-e", starter, module, storeDir],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const pid = await new Promise<number>((resolve, reject) => {
      createInterface({ input: parent.stdout }).once("line", (line) => resolve(Number(line)));
      parent.once("exit", (code) => reject(new Error(`the starter ended with ${code}`)));
    });
    expect(identifyProcess(pid)).toBeDefined();
    await expect(startBroker({ storeDir })).rejects.toMatchObject({ code: "STORE_IN_USE" });
    parent.kill("SIGKILL");
    await vi.waitFor(() => expect(identifyProcess(pid)).toBeUndefined(), { timeout: HANG_MS });
    const broker = await startBroker({ storeDir });
    await broker.stop();
  });
});

describe("findBroker", () => {
  test("finds one that may be used", async () => {
    const broker = await findBroker();
    expect(() => checkBrokerVersion(broker.version)).not.toThrow();
  });

  test("takes an empty PSERVER_NATS_SERVER for none", async () => {
    const environment = { ...process.env, PSERVER_NATS_SERVER: "" };
    expect((await findBroker(environment)).path).toMatch(/nats-server$/);
  });

  test("takes or refuses the one that PSERVER_NATS_SERVER names", async () => {
    const path = await script("echo nats-server: v2.11.9");
    expect(await findBroker({ PSERVER_NATS_SERVER: path })).toEqual({ path, version: "2.11.9" });
    const old = await script("echo nats-server: v2.9.10");
    await expect(findBroker({ PSERVER_NATS_SERVER: old })).rejects.toMatchObject({
      code: "BROKER_TOO_OLD",
    });
    const other = await script("echo something else");
    await expect(findBroker({ PSERVER_NATS_SERVER: other })).rejects.toMatchObject({
      code: "NO_BROKER",
      message: expect.stringContaining("something else"),
    });
    await expect(findBroker({ PSERVER_NATS_SERVER: join(dir, "missing") })).rejects.toMatchObject({
      code: "NO_BROKER",
    });
  });
});

test("setup judges versions as the launcher does", async () => {
  const minors = [0, 8, 9, 10, 11, 12, 13, 14];
  const patches = [0, 1, 2, 3, 4, 9, 10, 27, 28, 29];
  const versions = minors.flatMap((minor) => patches.map((patch) => `2.${minor}.${patch}`));
  versions.push("1.12.3", "3.0.0", "v2.12.15", "2.12.0-RC.1", "2.12", "latest");
  const { stdout } = await run(join(packageRoot(), "scripts", "broker-version.sh"), versions);
  const ratings = stdout.trim().split("\n");
  expect(ratings).toHaveLength(versions.length);
  for (const [i, version] of versions.entries()) {
    expect([version, ratings[i]]).toEqual([version, supportFor(version)]);
  }
});

function supportFor(version: string): string {
  try {
    return checkBrokerVersion(version);
  } catch {
    return "too-old";
  }
}

/** A shell script with these lines, to stand for a broker's program. */
async function script(lines: string): Promise<string> {
  const bin = await mkdtemp(join(dir, "bin-"));
  const path = join(bin, "nats-server");
  await mkdir(bin, { recursive: true });
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
  return path;
}

/** Publishes to a stream, made if needed, and waits for each acknowledgement. */
async function publish(broker: TestBroker, count: number): Promise<void> {
  const connection = await connect({ servers: broker.url });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
  for (let i = 0; i < count; i++) await jetstream(connection).publish("kept", `${i}`);
  await connection.close();
}

/** Messages of the stream that {@link publish} made; 0 without one. */
async function stored(broker: TestBroker): Promise<number> {
  const connection = await connect({ servers: broker.url });
  const manager = await jetstreamManager(connection);
  let messages = 0;
  for await (const info of manager.streams.list()) messages += info.state.messages;
  await connection.close();
  return messages;
}
