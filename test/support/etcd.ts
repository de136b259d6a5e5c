import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts } from "./free-ports.ts";
import { HANG_MS } from "./limits.ts";

const POLL_MS = 20;

/** How long one question for its health may take: something else may listen there, and say nothing. */
const HEALTH_MS = 2_000;

/** How often the first start is tried. */
const ATTEMPTS_MAX = 5;

/** Etcds to be ended when the test process exits without ending them. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A key as etcd's HTTP gateway tells it. */
export interface GatewayEntry {
  readonly key: string;
  readonly value: string;
  /** Id of the lease that the key goes with; undefined for none. */
  readonly lease: string | undefined;
}

/** An etcd of one test: on free ports, in a temporary directory that goes with it. */
export class TestEtcd {
  /** Stays the same when it is started again. */
  readonly url: string;
  readonly #home: string;
  readonly #peerUrl: string;
  #child: ChildProcess | undefined;

  private constructor(home: string, port: number, peerPort: number) {
    this.#home = home;
    this.url = `http://127.0.0.1:${port}`;
    this.#peerUrl = `http://127.0.0.1:${peerPort}`;
  }

  /** Starts an etcd and waits until it answers. */
  static async start(): Promise<TestEtcd> {
    for (let attempt = 1; ; attempt++) {
      const home = await mkdtemp(join(tmpdir(), "pserver-etcd-"));
      const [port, peerPort] = await freePorts(2);
      const etcd = new TestEtcd(home, port ?? 0, peerPort ?? 0);
      try {
        await etcd.#start();
        return etcd;
      } catch (error) {
        await etcd.remove();
        // Before it listens there, another test may be given one of its ports.
        if (attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  /** Starts it on the same ports and data, after `kill`; waits until it answers. */
  async start(): Promise<void> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      try {
        return await this.#start();
      } catch (error) {
        // While nobody listened there, another test may have been given one of its ports, for a time.
        if (performance.now() > deadline) throw error;
        await delay(POLL_MS);
      }
    }
  }

  async #start(): Promise<void> {
    const child = spawn(
      findEtcd(),
      [
        ...["--name", "test", "--data-dir", join(this.#home, "data")],
        ...["--listen-client-urls", this.url, "--advertise-client-urls", this.url],
        ...["--listen-peer-urls", this.#peerUrl, "--initial-advertise-peer-urls", this.#peerUrl],
        ...["--initial-cluster", `test=${this.#peerUrl}`],
        // Little is written and nothing lasts: the disk need not be waited for.
        "--unsafe-no-fsync",
      ],
      { stdio: "ignore" },
    );
    running.add(child);
    child.once("exit", () => running.delete(child));
    this.#child = child;
    const failed = new Promise<never>((_, reject) => {
      child.once("error", reject);
    });
    failed.catch(() => undefined);
    await Promise.race([failed, this.#untilHealthy(child)]);
  }

  /** Ends it as a crash does and keeps its data. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await exited;
  }

  /** Removes its data, after `kill`: the next start is that of a new etcd. */
  async forget(): Promise<void> {
    await rm(join(this.#home, "data"), { recursive: true, force: true });
  }

  /** Its process. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error("etcd does not run");
    return pid;
  }

  /** Ends it and removes its data. Put it in `afterEach` or `onTestFinished`. */
  async remove(): Promise<void> {
    await this.kill();
    await rm(this.#home, { recursive: true, force: true });
  }

  /** Asks the HTTP gateway; @throws for any status but 200. */
  async post(path: string, body: unknown): Promise<Record<string, unknown>> {
    const answer = await fetch(this.url + path, { method: "POST", body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  }

  /** Every key that begins with `prefix`, asked as a trainer in another language asks. */
  async list(prefix: string): Promise<GatewayEntry[]> {
    const end = Buffer.from(prefix);
    end.writeUInt8((end.at(-1) ?? 0) + 1, end.length - 1);
    const reply = await this.post("/v3/kv/range", {
      key: base64(prefix),
      range_end: end.toString("base64"),
    });
    const kvs = (reply["kvs"] ?? []) as Record<string, string>[];
    return kvs.map(({ key = "", value = "", lease }) => ({
      key: text(key),
      value: text(value),
      lease,
    }));
  }

  /** The value of one key; undefined if there is none. */
  async read(key: string): Promise<string | undefined> {
    return (await this.list(key)).find((entry) => entry.key === key)?.value;
  }

  /** Writes a key, without a lease. */
  async put(key: string, value: string): Promise<void> {
    await this.post("/v3/kv/put", { key: base64(key), value: base64(value) });
  }

  /** Removes a key. */
  async delete(key: string): Promise<void> {
    await this.post("/v3/kv/deleterange", { key: base64(key) });
  }

  /** Waits until the keys that begin with `prefix` are as wanted; @throws with them otherwise. */
  async until(prefix: string, holds: (entries: GatewayEntry[]) => boolean): Promise<void> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const entries = await this.list(prefix);
      if (holds(entries)) return;
      if (performance.now() > deadline) {
        throw new Error(`waited in vain; ${prefix} holds ${JSON.stringify(entries)}`);
      }
      await delay(POLL_MS);
    }
  }

  /** What it says of its health; "" if it does not answer. */
  async #health(): Promise<string> {
    try {
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(HEALTH_MS) });
      return answer.ok ? await answer.text() : "";
    } catch {
      return "";
    }
  }

  async #untilHealthy(child: ChildProcess): Promise<void> {
    const deadline = performance.now() + HANG_MS;
    for (;;) {
      const health = await this.#health();
      if (child.exitCode !== null) throw new Error(`etcd has ended with ${child.exitCode}`);
      if (health.includes('"true"')) return;
      if (performance.now() > deadline) throw new Error(`etcd does not answer at ${this.url}`);
      await delay(POLL_MS);
    }
  }
}

/** As `scripts/setup.sh --for-tests` provides it: its own before that of the machine. */
function findEtcd(): string {
  const local = join(import.meta.dirname, "../../.tools/bin/etcd");
  const path = (process.env["PATH"] ?? "").split(delimiter).map((place) => join(place, "etcd"));
  const found = [local, ...path, "/usr/bin/etcd", "/usr/local/bin/etcd"].find(existsSync);
  if (found === undefined) throw new Error("no etcd: run scripts/setup.sh --for-tests");
  return found;
}

function base64(plain: string): string {
  return Buffer.from(plain).toString("base64");
}

function text(encoded: string): string {
  return Buffer.from(encoded, "base64").toString();
}
