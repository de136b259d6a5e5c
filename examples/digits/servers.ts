import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Child } from "./child.ts";
import { type DemoProcesses, programFile } from "./demo-processes.ts";

const PSERVER = "../../src/cli/pserver";

// The journal of a few thousand updates would be a gigabyte; the last ones are enough to look at.
const KEPT_JOURNAL = ["--retain", "64MiB"];

const COMMAND_TIMEOUT_MS = 30_000;
const POLL_MS = 500;

/** The servers of one run, started with the command `pserver`. */
export class Servers {
  /** Address of the broker. */
  readonly url: string;
  readonly job: string;
  /** Version of nats-server. */
  readonly brokerVersion: string;
  readonly #processes: DemoProcesses;
  readonly #hostArguments: readonly string[];

  private constructor(processes: DemoProcesses, job: string, url: string, brokerVersion: string) {
    this.#processes = processes;
    this.job = job;
    this.url = url;
    this.brokerVersion = brokerVersion;
    const models = ["--model-dir", modelDirectory(processes)];
    this.#hostArguments = ["--url", url, "--job", job, ...models, ...KEPT_JOURNAL];
  }

  /** Starts a broker on a free port, with one host in the same process; all data is kept in a directory. */
  static async start(processes: DemoProcesses, job: string, directory: string): Promise<Servers> {
    await rm(join(directory, "store"), { recursive: true, force: true });
    const store = ["--store", directory];
    const args = ["--job", job, "--port", "0", ...store, ...KEPT_JOURNAL];
    const models = ["--model-dir", modelDirectory(processes)];
    const { ready } = await processes.startReady("pserver up", PSERVER, [
      ...["up", "--json", ...args, ...models],
    ]);
    const { url, brokers } = ready as { url: string; brokers: { version: string }[] };
    return new Servers(processes, job, url, brokers[0]?.version ?? "");
  }

  /** Starts one more host, in a process of its own; settles when it has joined. */
  async addHost(id: string): Promise<Child> {
    const args = ["host", "--json", "--id", id, ...this.#hostArguments];
    const { child } = await this.#processes.startReady(`pserver host ${id}`, PSERVER, args);
    return child;
  }

  /** Returns the numbers of the shards that a host owns; waits until it owns some. */
  async shardsOf(id: string): Promise<readonly number[]> {
    while (true) {
      const host = (await this.#hosts()).find((found) => found.id === id);
      if (host !== undefined && host.shards.length > 0) return host.shards;
      await delay(POLL_MS);
    }
  }

  /** Draws the losses that trainers have noted, as text. */
  async lossChart(width: number, isColored: boolean): Promise<string> {
    const look = isColored ? { FORCE_COLOR: "1" } : {};
    const text = await this.#run(["plot", "loss"], { ...look, COLUMNS: String(width) });
    return text.trimEnd();
  }

  async #hosts(): Promise<readonly { readonly id: string; readonly shards: readonly number[] }[]> {
    return JSON.parse(await this.#run(["status", "--json"])).hosts;
  }

  /** Returns what a command prints about the job. */
  async #run(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, programFile(PSERVER), ...args, "--url", this.url, "--job", this.job],
      { timeout: COMMAND_TIMEOUT_MS, env: { ...process.env, ...environment } },
    );
    return stdout;
  }
}

function modelDirectory(processes: DemoProcesses): string {
  return join(processes.directory, "models");
}
