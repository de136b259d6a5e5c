import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Child } from "./child.ts";
import { type Family, programFile } from "./family.ts";

const PSERVER = "../../src/cli/pserver";

// The journal of a few thousand updates would be a gigabyte; nobody needs its history.
const KEPT_JOURNAL = ["--retain", "64MiB"];

const STATUS_TIMEOUT_MS = 30_000;
const POLL_MS = 500;

/** The servers of one run, started with the command `pserver`. */
export class Servers {
  /** Address of the broker. */
  readonly url: string;
  readonly job: string;
  /** Version of nats-server. */
  readonly brokerVersion: string;
  readonly #family: Family;
  readonly #hostArguments: readonly string[];

  private constructor(family: Family, job: string, url: string, brokerVersion: string) {
    this.#family = family;
    this.job = job;
    this.url = url;
    this.brokerVersion = brokerVersion;
    const models = ["--model-dir", modelDirectory(family)];
    this.#hostArguments = ["--url", url, "--job", job, ...models, ...KEPT_JOURNAL];
  }

  /** A broker on a free port, with one host in the process that started it. */
  static async start(family: Family, job: string): Promise<Servers> {
    const store = ["--store", join(family.directory, "pserver")];
    const args = ["--job", job, "--port", "0", ...store, ...KEPT_JOURNAL];
    const models = ["--model-dir", modelDirectory(family)];
    const { ready } = await family.startReady("pserver up", PSERVER, [
      ...["up", "--json", ...args, ...models],
    ]);
    const { url, broker } = ready as { url: string; broker: { version: string } };
    return new Servers(family, job, url, broker.version);
  }

  /** Where the hosts save models. */
  get modelDirectory(): string {
    return modelDirectory(this.#family);
  }

  /** One more host, in a process of its own; settles when it has joined. */
  async addHost(id: string): Promise<Child> {
    const args = ["host", "--json", "--id", id, ...this.#hostArguments];
    const { child } = await this.#family.startReady(`pserver host ${id}`, PSERVER, args);
    return child;
  }

  /** The numbers of the shards that a host owns; waits until it owns some. */
  async shardsOf(id: string): Promise<readonly number[]> {
    while (true) {
      const host = (await this.#hosts()).find((found) => found.id === id);
      if (host !== undefined && host.shards.length > 0) return host.shards;
      await delay(POLL_MS);
    }
  }

  async #hosts(): Promise<readonly { readonly id: string; readonly shards: readonly number[] }[]> {
    const args = ["status", "--json", "--url", this.url, "--job", this.job];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, programFile(PSERVER), ...args],
      { timeout: STATUS_TIMEOUT_MS },
    );
    return JSON.parse(stdout).hosts;
  }
}

function modelDirectory(family: Family): string {
  return join(family.directory, "models");
}
