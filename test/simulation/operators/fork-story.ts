import { forkOriginOf, hasRemovalFlag } from "../../../src/actors/job/job-settings.ts";
import { JobRemoval } from "../../../src/actors/job/remove-job.ts";
import { type ForkedJob, forkJob } from "../../../src/history/continue/fork-job.ts";
import { type KnownSettings, knownSettings } from "../../../src/history/continue/new-job.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import type { Position } from "../../../src/protocol/index.ts";
import type { Random } from "../random.ts";
import { promise } from "../violation.ts";
import type { Process } from "./processes.ts";
import type { Tampering } from "./simulated-connection.ts";
import { LEASE_MS } from "./simulated-host.ts";
import { changedElements, SHARDS, type SimulatedJob } from "./simulated-job.ts";
import { World } from "./world.ts";

/** What is wrong with the commands of a story; nothing by default. */
export interface Variant {
  /** Changes what a command sends, and the answers. */
  readonly tampering?: (command: string) => Tampering;
  /** Whether a fork that fails removes the job, whoever may have it by now. */
  readonly removesOnAnyError?: boolean;
  /** How often the job is removed, instead of up to twice. */
  readonly removals?: number;
  /** Changes how an archive and the broker are read. */
  readonly reading?: (history: ShardHistory) => ShardHistory;
}

/** What has happened in a schedule. */
export interface Report {
  readonly steps: number;
  readonly completed: number;
  readonly failed: number;
  readonly crashed: number;
  readonly updates: number;
}

/** Counts how the processes of commands have ended. */
export function countRuns(
  runs: readonly Process[],
): Pick<Report, "completed" | "failed" | "crashed"> {
  const count = (test: (run: Process) => boolean): number => runs.filter(test).length;
  return {
    completed: count(({ result }) => result !== undefined),
    failed: count(({ error }) => error !== undefined),
    crashed: count(({ link }) => link.isDead),
  };
}

/** A job with a history of two cuts, served once. */
export async function prepare(world: World): Promise<{ job: SimulatedJob; cuts: Position[][] }> {
  const job = world.job("old");
  const host = world.host(job);
  const cuts: Position[][] = [];
  await world.quietly("prepare", async () => {
    await host.join({ shards: SHARDS, leaseMs: LEASE_MS, tape: false, journalBytesMax: 1 << 24 });
    for (let shard = 0; shard < SHARDS; shard++) await host.takeOver(shard);
    for (const error of host.stopped.values()) throw error;
    await job.initialize();
    for (let round = 0; round < 3; round++) {
      await job.create(`p${round}`, round % SHARDS);
      for (let shard = 0; shard < SHARDS; shard++) {
        for (let pushes = 0; pushes < 2; pushes++) job.push(shard);
      }
      cuts.push(job.cut());
    }
    for (let shard = 0; shard < SHARDS; shard++) {
      await host.fold(shard);
      await host.save(shard);
    }
  });
  world.processes.crash(host.process);
  return { job, cuts };
}

/** Several forks of a job under one name, hosts of the new job, its trainers, and perhaps its removal. */
export class ForkStory {
  readonly #world: World;
  readonly #variant: Variant;
  readonly #runs: Process[] = [];
  #old: SimulatedJob;
  #new: SimulatedJob;
  #cuts: Position[][] = [];
  #known: KnownSettings = {};
  /** Lives of the new job that a run has completed, or that a host has joined. */
  readonly #inService: Set<string> = new Set();
  #hasRemoved = false;
  /** The streams that processes have listed and not found to be others since: when they were made, by name. */
  readonly #listed: Map<string, Map<string, string>> = new Map();

  constructor(random: Random, variant: Variant = {}) {
    this.#world = new World(random);
    this.#variant = variant;
    this.#old = this.#world.job("old");
    this.#new = this.#world.job("new", 64);
  }

  async run(): Promise<Report> {
    const world = this.#world;
    ({ job: this.#old, cuts: this.#cuts } = await prepare(world));
    this.#known = await knownSettings(world.processes.instant("known"), { job: "old" });
    world.onMessage = (process, { subject }) => this.#watch(process, subject);
    const removals = this.#variant.removals ?? world.random.below(3);
    await world.storm([
      { weight: 8, left: 3, may: () => world.seemsStuck(this.#runs), run: () => this.#start() },
      { weight: Math.max(2, removals), left: removals, run: () => this.#remove() },
      { weight: 20, left: 30, run: () => this.#host() },
      { weight: 12, left: 20, run: () => this.#push() },
    ]);
    world.calm();
    await this.#complete();
    await this.#check();
    const { length: updates } = this.#new.updates;
    return { steps: world.processes.step, updates, ...countRuns(this.#runs) };
  }

  #start(): void {
    const world = this.#world;
    const name = "fork";
    const process = world.start(name, this.#variant.tampering?.(name));
    this.#runs.push(process);
    const at = world.random.pick(this.#cuts.slice(0, 2)) as Position[];
    process.do(() => this.#fork(process, at));
  }

  async #fork(process: Process, at: readonly Position[]): Promise<ForkedJob> {
    const { connection, name: host } = process;
    try {
      const forked = await forkJob({
        ...{ connection, host, job: "new", known: this.#known, at },
        of: { job: "old", shards: SHARDS, synchronization: { mode: "async" } },
        shards: SHARDS,
        makeShard: async (shard) => {
          // Rebuilding takes its time, too.
          await connection.request("$JS.API.INFO");
          return await this.#old.stateAt(shard, at[shard] as Position);
        },
        signal: new AbortController().signal,
        onStage: (stage) => {
          if (stage === "complete") this.#inService.add(this.#new.life);
        },
      });
      return forked;
    } catch (error) {
      if (this.#variant.removesOnAnyError === true) await this.#removal(process);
      throw error;
    }
  }

  #remove(): void {
    const process = this.#world.start("remove", this.#variant.tampering?.("remove"));
    process.do(() => this.#removal(process));
  }

  async #removal({ connection }: Pick<Process, "connection">): Promise<void> {
    const options = { connection, job: "new", etcd: undefined, timeoutMs: 5_000 };
    await new JobRemoval(options).run(() => {
      this.#hasRemoved = true;
    });
  }

  /** Hosts are started for a job that is there. */
  async #host(): Promise<void> {
    if ((await this.#settings()) !== undefined) this.#world.actOfHost(this.#new);
  }

  async #push(): Promise<void> {
    const { life } = this.#new;
    const joined = this.#world.hosts.some((host) => host.job === this.#new && host.hasJoined);
    const origin = forkOriginOf((await this.#settings()) ?? {});
    if (!joined || origin === undefined || origin.pending !== undefined) return;
    this.#inService.add(life);
    this.#new.push(this.#world.random.below(SHARDS));
  }

  /**
   * A fork removes only what nobody can have used, and nobody removes a stream that was made since it listed them: the
   * broker removes by name, so a process looks at a stream once more directly before.
   */
  #watch(process: string, subject: string): void {
    const { streams } = this.#world.broker;
    const [, operation, name = ""] =
      /^\$JS\.API\.STREAM\.(LIST|INFO|DELETE)\.?(.*)$/.exec(subject) ?? [];
    const listed = this.#listed.get(process) ?? new Map<string, string>();
    this.#listed.set(process, listed);
    const stream = streams.get(name);
    const isRoom = name.endsWith("_ROOM");
    if (operation === "LIST") for (const [each, { created }] of streams) listed.set(each, created);
    if (stream === undefined || isRoom) return;
    if (operation === "INFO" && listed.get(name) !== stream.created) listed.delete(name);
    if (operation !== "DELETE") return;
    const isFork = process.startsWith("fork");
    const isInService = isFork && this.#inService.has(this.#new.life);
    promise(!isInService, () => `${process} removes ${name} of a job in service`);
    promise(listed.has(name), () => `${process} removes ${name}, which is another one by now`);
  }

  /** Does what the documents advise after a fork or a removal that was interrupted. */
  async #complete(): Promise<void> {
    const world = this.#world;
    for (let tries = 0; tries < 3; tries++) {
      const settings = await this.#settings();
      const isBegun = settings !== undefined;
      if (isBegun && hasRemovalFlag(settings)) {
        await world.quietly("remove", (process) => this.#removal(process));
      } else if (isBegun && forkOriginOf(settings)?.pending === undefined) return;
      else {
        const at = this.#cuts[0] as Position[];
        await world.quietly("fork-last", (process) => this.#fork(process, at));
      }
    }
  }

  async #settings(): Promise<unknown> {
    const [found] = this.#world.broker.take({
      subject: "$JS.API.STREAM.MSG.GET.KV_PS_new",
      data: new TextEncoder().encode(JSON.stringify({ last_by_subj: "$KV.PS_new.settings" })),
    });
    const body = JSON.parse(new TextDecoder().decode(found?.data)) as {
      message?: { data: string };
    };
    return body.message && JSON.parse(Buffer.from(body.message.data, "base64").toString());
  }

  /** The new job is the old one at its cut, and all updates that it has got since. */
  async #check(): Promise<void> {
    const origin = forkOriginOf(await this.#settings());
    if (origin === undefined) {
      // A host that comes when a fork has failed, or was removed, makes another job.
      promise(this.#hasRemoved || this.#inService.size === 0, () => "a job in service is gone");
      return;
    }
    const found = await this.#world.serve(this.#new);
    for (const [shard, elements] of found.entries()) {
      const at = origin.at[shard] as Position;
      const before = changedElements(await this.#old.stateAt(shard, at), shard);
      const { life, updates } = this.#new;
      const since = updates.filter((update) => update.shard === shard && update.life === life);
      const expected = [...before, ...since.map(({ element }) => element)];
      promise(
        JSON.stringify(elements) === JSON.stringify(expected),
        () => `the new job's shard ${shard} has ${elements}, not ${expected}`,
      );
    }
  }
}
