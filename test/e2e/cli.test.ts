// Proves the command as people use it, by running the compiled program: `up` serves, every other
// command works against it and fails with its documented exit code, and whatever ends `up` (Ctrl-C,
// Ctrl-C twice, SIGKILL) leaves no process behind and loses nothing that was acknowledged.
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { startBroker } from "../../src/broker/index.ts";
import { connect } from "../../src/client/index.ts";
import { openModel, saveModel } from "../../src/model-files/index.ts";
import { bytesOf, type TensorData } from "../../src/protocol/dtypes.ts";
import { identifyProcess } from "../../src/system/process-identity.ts";
import { type Finished, run, runProcess, start } from "../cli/spawn-command.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { HANG_MS } from "../support/limits.ts";
import { checkedPid, signalProcess } from "../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };

/** Values of the model that the tests load. */
const W = Float32Array.from({ length: 12 }, (_, i) => i / 10);
const STEPS = BigInt64Array.of(2n ** 60n, -1n);

interface Up {
  readonly url: string;
  readonly store: string;
  readonly pid: number;
  readonly brokerPid: number;
  readonly hosts: readonly string[];
  /** Runs another command against it, in its directory. */
  run(...args: string[]): Promise<Finished>;
  signal(signal: NodeJS.Signals): void;
  readonly finished: Promise<Finished>;
  errors(): string;
}

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-cli-"));
  process.chdir(home);
  const data: Readonly<Record<string, TensorData>> = { w: W, steps: STEPS };
  await saveModel({
    directory: home,
    path: "model.safetensors",
    tensors: [
      { name: "w", dtype: "float32", shape: [3, 4] },
      { name: "steps", dtype: "int64", shape: [2] },
    ],
    chunks: async function* ({ name }) {
      yield bytesOf(data[name] ?? W);
    },
  });
});
afterAll(async () => {
  process.chdir(packageRoot());
  await rm(home, { recursive: true, force: true });
});

/** Starts `pserver up` on a free port; what it started ends with the test. */
async function up(store: string, ...args: string[]): Promise<Up> {
  const command = ["up", "--port", "0", "--store", store, "--shards", "4", "--json", ...args];
  const running = start(command, { cwd: home });
  const { child, finished } = running;
  onTestFinished(async () => {
    // A second signal ends at once what the test has not ended.
    child.kill("SIGTERM");
    child.kill("SIGTERM");
    await finished;
  });
  const ready = JSON.parse(await running.firstLine);
  return {
    url: ready.url,
    store,
    pid: checkedPid(child.pid),
    brokerPid: ready.brokers[0].pid,
    hosts: ready.hosts,
    run: (...others) => run(others, { environment: { PSERVER_URL: ready.url } }),
    signal: (signal) => child.kill(signal),
    finished,
    errors: running.errors,
  };
}

/** Pids of the hosts of a job, as they say themselves. */
/** The processes of its two hosts. One that cannot reach the broker for a moment may not be listed at first. */
async function hostPids(served: Up): Promise<number[]> {
  return await vi.waitFor(async () => {
    const { hosts } = JSON.parse((await served.run("status", "--json")).stdout);
    expect(hosts).toHaveLength(2);
    return hosts.map(({ pid }: { pid: number }) => pid);
  }, WAIT);
}

async function untilGone(pids: readonly number[]): Promise<void> {
  await vi.waitFor(() => expect(pids.filter((pid) => identifyProcess(pid))).toEqual([]), WAIT);
}

describe("a job on this machine", () => {
  test("is served, filled, read, changed, saved, stopped, and continues where it was", async () => {
    const store = join(home, "whole");
    const first = await up(store, "--hosts", "2");
    expect(first.hosts).toHaveLength(2);
    const pids = [first.brokerPid, ...(await hostPids(first))];
    expect(new Set(pids).size).toBe(3);

    expect(await first.run("get", "w")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^pserver: NOT_INITIALIZED: .*\nhint: /),
    });
    const loaded = await first.run("load", "model.safetensors", "--learning-rate", "0.5", "--json");
    expect(loaded).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(loaded.stdout)).toEqual({
      ...{ parameters: 2, bytes: 64, overwritten: false, restored: 0, skipped: [] },
    });
    expect(await first.run("load", "model.safetensors")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("ALREADY_INITIALIZED"),
    });

    const status = JSON.parse((await first.run("status", "--json")).stdout);
    expect(status).toMatchObject({
      job: "default",
      state: "ready",
      parameters: { count: 2, ready: 2, blocks: 2, bytes: 64 },
    });
    expect(status.shards).toHaveLength(4);
    expect((await first.run("status")).stdout).toMatch(/^job default: ready/);

    const listed = JSON.parse((await first.run("ls", "--json")).stdout);
    expect(listed).toMatchObject([
      { name: "steps", dtype: "int64", shape: [2], bytes: 16, blocks: 1, ready: true },
      { name: "w", dtype: "float32", shape: [3, 4], config: { learningRate: { rate: 0.5 } } },
    ]);
    expect((await first.run("ls")).stdout.split("\n")[0]).toMatch(/^NAME +DTYPE +SHAPE +SIZE/);

    expect((await first.run("get", "w")).stdout).toBe(
      "w  float32 (3, 4)  48 B  version 1  updates 0\n[[  0 0.1 0.2 0.3]\n [0.4 0.5 0.6 0.7]\n [0.8 0.9   1 1.1]]\n",
    );
    expect(JSON.parse((await first.run("get", "steps", "--json")).stdout)).toEqual({
      name: "steps",
      dtype: "int64",
      shape: [2],
      version: { least: 1, most: 1 },
      updates: 0,
      values: ["1152921504606846976", "-1"],
    });

    await writeFile(join(home, "new.json"), "[[1,2,3,4],[5,6,7,8],[9,10,11,12.5]]");
    expect(await first.run("set", "w", "new.json")).toMatchObject({ code: 0 });
    expect(await first.run("get", "w", "--out", "w.npy")).toMatchObject({ code: 0, stdout: "" });
    expect((await readFile(join(home, "w.npy"))).subarray(1, 6).toString()).toBe("NUMPY");
    expect(await first.run("set", "w", "w.npy")).toMatchObject({ code: 0 });

    const saved = JSON.parse((await first.run("save", "runs/1.npz", "--json")).stdout);
    expect(saved).toMatchObject({ file: join(store, "models/runs/1.npz"), format: "npz" });
    expect(first.hosts).toContain(saved.host);
    const model = await openModel(saved.file);
    expect(model.tensors.map(({ header }) => header.name).sort()).toEqual(["steps", "w"]);
    await model.close();
    // The name that was saved is found in the host's model directory, unless there is such a file here.
    const again = ["load", "runs/1.npz", "--overwrite"];
    const found = await first.run(...again);
    expect(found).toMatchObject({ code: 0, stderr: expect.stringContaining(saved.file) });
    await mkdir(join(home, "runs"));
    await writeFile(join(home, "runs/1.npz"), "other bytes");
    expect((await first.run(...again)).stderr).toContain("BAD_FILE");
    await rm(join(home, "runs"), { recursive: true });
    expect((await first.run("load", "../models/runs/1.npz", "--overwrite")).code).toBe(6);

    const healthy = await first.run("doctor", "--store", store);
    expect(healthy).toMatchObject({ code: 0 });
    expect(healthy.stdout).toMatch(/^ok {4}disk: .* free, .* reserved and not yet used$/m);
    expect(healthy.stdout).toMatch(/^ok {4}file storage: .* used, .* reserved/m);
    expect(healthy.stdout).toMatch(/^ok {4}journals: 4 hold .* reserved$/m);

    first.signal("SIGINT");
    expect(await first.finished).toMatchObject({ code: 0 });
    await untilGone(pids);

    const served = await up(store);
    const [steps, w] = listed;
    expect(JSON.parse((await served.run("ls", "--json")).stdout)).toEqual([
      { ...steps, version: { least: 2, most: 2 }, updates: 1 },
      { ...w, version: { least: 4, most: 4 }, updates: 3 },
    ]);
    expect(JSON.parse((await served.run("get", "w", "--json")).stdout).values).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5],
    ]);
  });

  test("goes on where it was with journals in memory, too", async () => {
    const store = join(home, "memory");
    const first = await up(store, "--hosts", "2", "--journal", "memory");
    expect(await first.run("load", "model.safetensors")).toMatchObject({ code: 0 });
    await writeFile(join(home, "twos.json"), JSON.stringify(Array(3).fill(Array(4).fill(2))));
    expect(await first.run("set", "w", "twos.json")).toMatchObject({ code: 0 });
    const listed = (await first.run("ls", "--json")).stdout;
    const value = (await first.run("get", "w", "--json")).stdout;
    first.signal("SIGINT");
    expect(await first.finished).toMatchObject({ code: 0 });
    expect(first.errors()).not.toContain("not saved");
    const again = await up(store, "--hosts", "2");
    expect((await again.run("ls", "--json")).stdout).toBe(listed);
    expect((await again.run("get", "w", "--json")).stdout).toBe(value);
    expect(again.errors()).not.toContain("is gone");
    expect(JSON.parse((await again.run("status", "--json")).stdout)).toMatchObject({
      state: "ready",
    });
  });

  test("makes its job anew when the store of its broker was emptied", async () => {
    const store = join(home, "emptied");
    const served = await up(store);
    expect(await served.run("load", "model.safetensors")).toMatchObject({ code: 0 });
    signalProcess(served.brokerPid, "SIGSTOP");
    await rm(join(store, "store", "jetstream"), { recursive: true });
    signalProcess(served.brokerPid, "SIGKILL");
    await vi.waitFor(() => expect(served.errors()).toContain("host 1 is back as"), WAIT);
    expect(served.errors()).toContain("host 1 has ended: JOB_DAMAGED");
    const { stdout } = await served.run("status", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ state: "uninitialized" });
    expect(await served.run("load", "model.safetensors")).toMatchObject({ code: 0 });
  });

  test("starts its broker and a host of it again when they die", async () => {
    const served = await up(join(home, "crash"), "--hosts", "2");
    expect(await served.run("load", "model.safetensors")).toMatchObject({ code: 0 });
    signalProcess(served.brokerPid, "SIGKILL");
    await vi.waitFor(() => expect(served.errors()).toContain("the broker is back"), WAIT);
    expect(await served.run("get", "w")).toMatchObject({ code: 0 });

    const pids = await hostPids(served);
    const [other] = pids.filter((pid) => pid !== served.pid);
    signalProcess(other, "SIGKILL");
    await vi.waitFor(() => expect(served.errors()).toContain("host process 2 is back as"), WAIT);
    // Each line of what it tells begins with the time, or has it.
    for (const line of served.errors().trim().split("\n")) {
      expect(Date.parse(JSON.parse(line).time)).toBeGreaterThan(Date.parse("2026-01-01"));
    }
    await vi.waitFor(async () => {
      const { hosts, shards } = JSON.parse((await served.run("status", "--json")).stdout);
      expect(hosts).toHaveLength(2);
      expect(hosts.map(({ pid }: { pid: number }) => pid)).not.toContain(other);
      expect(shards.map(({ state }: { state: string }) => state)).toEqual(Array(4).fill("serving"));
    }, WAIT);
    expect((await served.run("get", "w", "--json")).stdout).toContain('"values":[0,0.1,');
  });

  test("leaves no process behind when it is killed", async () => {
    const killed = await up(join(home, "killed"), "--hosts", "2");
    const pids = [killed.brokerPid, ...(await hostPids(killed))];
    killed.signal("SIGKILL");
    await untilGone(pids);
  });

  test("ends in order at the first Ctrl-C, and at the second at once", async () => {
    const hurried = await up(join(home, "hurried"), "--hosts", "2");
    const pids = [hurried.brokerPid, ...(await hostPids(hurried))];
    const frozen = checkedPid(pids.find((pid) => pid !== hurried.pid && pid !== hurried.brokerPid));
    await freeze(frozen);
    onTestFinished(() => {
      if (identifyProcess(frozen)) signalProcess(frozen, "SIGKILL");
    });
    hurried.signal("SIGINT");
    // It has begun to stop in order: its own host is gone, and it waits for the other one.
    const job = ["--url", hurried.url, "--timeout", "2s", "--json"];
    await vi.waitFor(async () => {
      const { stdout, stderr } = await run(["status", ...job]);
      const hosts = stdout === "" ? [] : JSON.parse(stdout).hosts;
      expect(hosts.map(({ pid }: { pid: number }) => pid)).not.toContain(hurried.pid);
      expect(stderr).not.toContain("NO_BROKER");
    }, WAIT);
    expect(identifyProcess(hurried.pid)).toBeDefined();

    hurried.signal("SIGINT");
    expect(await hurried.finished).toMatchObject({ code: 130 });
    // In order it would have waited for this one, and killed it at last.
    expect(identifyProcess(frozen)).toBeDefined();
    thaw(frozen);
    await untilGone(pids);
  });

  test("refuses settings that contradict it, and a store in use", async () => {
    const ssp = ["--sync", "ssp", "--trainers", "2", "--staleness", "1"];
    const served = await up(join(home, "settings"), "--hosts", "2", ...ssp);
    const { stdout } = await served.run("status");
    expect(stdout).toMatch(
      /steps +ssp of 2 trainers, staleness 1; 0 members, not enough yet; step 0/,
    );
    const inUse = await runProcess(["up", "--port", "0", "--store", served.store]);
    expect(inUse).toMatchObject({ code: 6, stderr: expect.stringContaining("STORE_IN_USE") });
    served.signal("SIGTERM");
    expect(await served.finished).toMatchObject({ code: 0 });

    const other = await runProcess(["up", "--port", "0", "--store", served.store, "--shards", "8"]);
    expect(other).toMatchObject({ code: 3, stdout: "" });
    expect(other.stderr).toMatch(/JOB_EXISTS: .*\b4\b.*\b8\b/);
    const async = await runProcess([
      "up",
      "--port",
      "0",
      "--store",
      served.store,
      "--sync",
      "async",
    ]);
    expect(async.stderr).toMatch(
      /JOB_EXISTS: .* ssp of 2 trainers, staleness 1; received .* async/,
    );
  });
});

describe("failures", () => {
  test.each(["status", "ls", "doctor"])("%s without a broker", async (command) => {
    const args = [command, "--url", "nats://127.0.0.1:1", "--timeout", "500ms"];
    const { code, stdout, stderr } = await run(args);
    expect(code).toBe(command === "doctor" ? 1 : 2);
    expect(stdout + stderr).toContain("NO_BROKER");
  });

  test("a job without a host, and errors as JSON", async () => {
    const broker = await startBroker({ storeDir: join(home, "bare") });
    onTestFinished(() => broker.kill());
    const { code, stdout, stderr } = await run(["get", "w", "--url", broker.url, "--json"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "NO_HOST" } });
  });

  test("names, paths and files", async () => {
    const served = await up(join(home, "failures"), "--job", "j-1");
    const j1 = ["--job", "j-1"];
    // A tensor that no parameter can hold is left out, or not, before the job is touched.
    const narrow = join(packageRoot(), "test/fixtures/model-files/narrow.npz");
    expect(await served.run("load", narrow, ...j1)).toMatchObject({
      ...{ code: 3, stdout: "", stderr: expect.stringContaining('BAD_DTYPE: "complex"') },
    });
    const config = ["--config", '{"allowNonFinite":true}'];
    const loaded = await served.run(
      "load",
      narrow,
      "--skip-unsupported",
      "--json",
      ...config,
      ...j1,
    );
    expect(JSON.parse(loaded.stdout)).toMatchObject({ parameters: 7, skipped: ["complex"] });
    expect(loaded.stderr).toContain("is left out");
    expect((await served.run("get", "half", ...j1)).stdout).toContain("float16 (9,)");
  });

  test("of a job with a model", async () => {
    const served = await up(join(home, "model"), "--job", "j-1");
    const j1 = ["--job", "j-1"];
    expect(await served.run("load", "model.safetensors", ...j1)).toMatchObject({ code: 0 });
    await writeFile(join(home, "short.bin"), new Uint8Array(44));
    for (const [args, code, text] of [
      [["get", "nope"], 3, 'UNKNOWN_PARAMETER: no parameter is called "nope"'],
      [["set", "w", "short.bin"], 3, "BAD_LENGTH: w: bytes: expected 48; received 44"],
      [["set", "w", "none.npy"], 6, "IO: "],
      [["save", "../out.npz"], 3, "BAD_PATH: "],
      [["save", "/tmp/out.npz"], 3, "BAD_PATH: "],
      [["load", "none.safetensors"], 6, "IO: "],
      [["get", "w", "--out", "no/such/dir/w.npy"], 6, "IO: "],
    ] as const) {
      const end = await served.run(...args, ...j1);
      expect(end, args.join(" ")).toMatchObject({ code, stdout: "" });
      expect(end.stderr).toContain(`pserver: ${text}`);
    }
    // A pipe is written to, not replaced by a file.
    const pipe = join(home, "pipe");
    execFileSync("mkfifo", [pipe]);
    const [piped, end] = await Promise.all([
      readFile(pipe),
      served.run("get", "w", "--out", "pipe", ...j1),
    ]);
    expect(end).toMatchObject({ code: 0 });
    expect(piped).toEqual(Buffer.from(bytesOf(W)));
    expect((await stat(pipe)).isFIFO()).toBe(true);
    // What was refused has changed nothing.
    expect((await served.run("get", "w", "--json", ...j1)).stdout).toContain('"values":[0,0.1,');
  });

  test("credentials and permissions", async () => {
    const broker = await startBroker({
      storeDir: join(home, "users"),
      extraConfig: `authorization { users = [
        { user: host, password: h }
        { user: trainer, password: t, permissions: {
          publish: [
            "ps.j.log.*.trainer.t1.>", "ps.j.block.*.*.t1.pull", "ps.j.shard.*.t1.*"
            "ps.j.lifecycle.t1.*"
          ]
          subscribe: ["_INBOX_j.t1.>"] } } ] }`,
    });
    onTestFinished(() => broker.kill());
    const at = ["--url", broker.url, "--job", "j", "--timeout", "30s"];
    expect(await run(["status", ...at, "--user", "host", "--password", "x"])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("pserver: DENIED: "),
    });

    const asHost = await run(["doctor", ...at, "--json"], {
      environment: { NATS_USER: "host", NATS_PASSWORD: "h" },
    });
    expect(statuses(asHost)).toMatchObject({
      "trainer permissions": "ok",
      "host permissions (store)": "ok",
      "host permissions (answers)": "ok",
      hosts: "fail",
    });
    const user = ["--user", "trainer", "--password", "t"];
    const asTrainer = await run(["doctor", ...at, ...user, "--trainer", "t1", "--json"]);
    expect(statuses(asTrainer)).toMatchObject({
      "trainer permissions": "ok",
      "host permissions (store)": "skip",
      "host permissions (answers)": "skip",
    });
    const asAnother = await run(["doctor", ...at, ...user, "--trainer", "t2", "--json"]);
    expect(statuses(asAnother)).toMatchObject({ "trainer permissions": "fail" });
    expect(asAnother.code).toBe(1);
  });
});

describe("completion in bash", () => {
  let script: string;
  let bin: string;
  beforeAll(async () => {
    bin = join(home, "bin");
    await mkdir(bin);
    const main = join(packageRoot(), "dist/pserver.js");
    const program = `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`;
    await writeFile(join(bin, "pserver"), program, { mode: 0o755 });
    script = execFileSync(join(bin, "pserver"), ["completion", "bash"], { encoding: "utf8" });
  });

  /** What is offered for the last of the words, as it would be typed. */
  function complete(words: readonly string[], variables: Record<string, string> = {}): string[] {
    const list = words.map((word) => `'${word}'`).join(" ");
    const asked = `COMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _pserver`;
    const text = `${script}\n${asked}; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { PATH, XDG_STATE_HOME } = process.env;
    const env = { ...variables, XDG_STATE_HOME, PATH: `${bin}:${PATH}` };
    const offered = execFileSync("bash", ["--norc", "-c", text], { encoding: "utf8", env });
    return offered.split("\n").filter((line) => line !== "");
  }

  test("of commands, flags and choices", () => {
    expect(complete(["pserver", "st"])).toEqual(["status"]);
    expect(complete(["pserver", "up", "--jo"])).toEqual(["--job", "--journal", "--journal-limit"]);
    expect(complete(["pserver", "up", "--journal", ""])).toEqual(["file", "memory"]);
    expect(complete(["pserver", "completion", "z"])).toEqual(["zsh"]);
  });

  test("of the names of jobs and parameters; nothing where they cannot be asked for", async () => {
    const served = await up(join(home, "names"), "--job", "mnist");
    const client = await connect({ url: served.url, job: "mnist", trainer: "a" });
    const names = ["emb:sparse-0", "two words", "$(touch pwned)", "w", "bell\u0007"];
    for (const name of names) await client.createIfNotAlreadyCreated(name, Float32Array.of(1));
    await client.close();
    const at = { PSERVER_URL: served.url };
    // The limit of a second is for people; on a busy machine it may pass.
    const offers = (
      words: string[],
      expected: string[],
      variables: Record<string, string> = at,
    ): Promise<void> =>
      vi.waitFor(() => expect(complete(words, variables)).toEqual(expected), WAIT);
    await offers(["pserver", "status", "--job", ""], ["mnist"]);
    await offers(["pserver", "remove", "m"], ["mnist"]);
    const all = ["\\$\\(touch\\ pwned\\)", "emb:sparse-0", "two\\ words", "w"];
    await offers(["pserver", "get", "--job", "mnist", ""], all);
    await offers(["pserver", "get", "e"], ["emb:sparse-0"], { ...at, PSERVER_JOB: "mnist" });
    await offers(
      ["pserver", "set", "--url", served.url, "--job", "mnist", "emb:"],
      ["emb:sparse-0"],
    );
    expect(complete(["pserver", "set", "--job", "mnist", "w", ""], at)).toEqual([]);
    expect(complete(["pserver", "get", ""], { PSERVER_URL: "nats://127.0.0.1:1" })).toEqual([]);
  });
});

/** The doctor's statuses by the name of the check. */
function statuses({ stdout }: Finished): Record<string, string> {
  const { checks } = JSON.parse(stdout);
  return Object.fromEntries(
    checks.map(({ name, status }: { name: string; status: string }) => [name, status]),
  );
}
