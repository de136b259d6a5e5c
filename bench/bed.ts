import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostOptions } from "../src/actors/host/host.ts";
import { type Broker, startBroker } from "../src/broker/index.ts";
import { AgentProcess, type Commands } from "./agent-process.ts";
import type { BenchHost } from "./programs/host.ts";
import type { Trainer } from "./programs/trainer.ts";

/** Where journals are kept. */
export type Storage = "file" | "memory";

/**
 * A host retains 64 MiB of each shard's journal and takes a snapshot after as much. The
 * defaults are larger; with these a run of some minutes does both, on a few GB of disk.
 */
const HOST = { workers: 1, retainBytes: 64 * 1024 ** 2, snapshotBytes: 64 * 1024 ** 2 };

/** A short lease: a host waits for one before it claims shards. */
const LEASE_MS = 3_000;

/** A broker on a free port and a temporary directory, and processes that use it. */
export class Bed {
  readonly broker: Broker;
  readonly #home: string;
  readonly #profileDirectory: string | undefined;
  readonly #agents: AgentProcess<Commands>[] = [];
  readonly #closings: (() => Promise<unknown>)[] = [];
  readonly #removeHome: () => void;

  private constructor(broker: Broker, home: string, profileDirectory: string | undefined) {
    this.broker = broker;
    this.#home = home;
    this.#profileDirectory = profileDirectory;
    // For a run that is interrupted: the broker and the agents end by themselves.
    this.#removeHome = () => rmSync(home, { recursive: true, force: true });
    process.once("exit", this.#removeHome);
  }

  /** Starts a broker. */
  static async open(profileDirectory: string | undefined): Promise<Bed> {
    const home = await mkdtemp(join(tmpdir(), "pserver-bench-"));
    // The broker keeps the memory that it frees. Otherwise the measurement after one that used
    // much would pay for new pages: half of the broker's CPU time in such a round.
    process.env["GODEBUG"] = "madvdontneed=0";
    try {
      const broker = await startBroker({ storeDir: join(home, "store") });
      return new Bed(broker, home, profileDirectory);
    } catch (error) {
      await rm(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** Starts a program of `bench/programs`. */
  start<Known extends Commands>(program: string): AgentProcess<Known> {
    const agent = AgentProcess.start<Known>(program, this.#profileDirectory);
    this.#agents.push(agent as unknown as AgentProcess<Commands>);
    return agent;
  }

  /** Starts a host of a job; the first one makes the job. */
  async startHost(
    job: string,
    journal: Storage,
    options: Partial<Omit<HostOptions, "connection" | "job">> = {},
  ): Promise<AgentProcess<BenchHost>> {
    const host = this.start<BenchHost>("host");
    const connection = { servers: [this.broker.url], timeoutMs: 10_000 };
    await host.call("open", {
      ...{ connection, job, journal, leaseMs: LEASE_MS, ...HOST },
      ...options,
    });
    this.#closings.unshift(() => host.call("close", undefined));
    return host;
  }

  /** Starts a trainer of a job. */
  async startTrainer(job: string, trainer: string): Promise<AgentProcess<Trainer>> {
    const agent = this.start<Trainer>("trainer");
    await agent.call("open", { url: this.broker.url, job, trainer });
    this.#closings.unshift(() => agent.call("close", undefined));
    return agent;
  }

  /** Registers a process of another kind, to be ended before everything that was started earlier. */
  adopt(process: { stop(): Promise<void> }): void {
    this.#closings.unshift(() => process.stop());
  }

  /** Ends everything, in reverse order, and removes the broker's data. */
  async close(): Promise<void> {
    try {
      for (const close of this.#closings) await close();
    } finally {
      await Promise.all(this.#agents.map((agent) => agent.stop()));
      await this.broker.kill();
      await rm(this.#home, { recursive: true, force: true });
      process.off("exit", this.#removeHome);
    }
  }
}
