import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { archiveJob } from "../../../src/cli/history/follow-job.ts";
import { Output } from "../../../src/cli/output/output.ts";
import { ArchiveSource } from "../../../src/history/archive/archive-source.ts";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { joinHistories } from "../../../src/history/archive/joined-source.ts";
import { BrokerHistory } from "../../../src/history/broker-history.ts";
import { replayShard } from "../../../src/history/replay/replay-shard.ts";
import {
  rebuildableRanges,
  type ShardHistory,
  takeInventory,
} from "../../../src/history/source.ts";
import { ensureError, PserverError } from "../../../src/protocol/errors.ts";
import type { Position } from "../../../src/protocol/index.ts";
import type { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { ArchiveLedger, GRACE_MS } from "./archive-ledger.ts";
import { countRuns, prepare, type Report, type Variant } from "./fork-story.ts";
import type { Process } from "./processes.ts";
import { ProcessFiles, withSimulatedFiles } from "./simulated-files.ts";
import { SHARDS, type SimulatedJob } from "./simulated-job.ts";
import { World } from "./world.ts";

/** Machines that share the archive's directory: only on the same one an archiver keeps another out. */
const MACHINES = 3;

/** How long an archiver follows the job at most until somebody interrupts it. */
const FOLLOWS_MS = 12_000;

/** Points of each shard that are replayed in one look at the archive. */
const REPLAYS = 2;

const { signal } = new AbortController();

/** Archivers of a job in one directory that are interrupted, hang, die and are overtaken, while hosts trim. */
export class ArchiveStory {
  readonly #world: World;
  readonly #variant: Variant;
  readonly #runs: Process[] = [];
  readonly #holders: Map<number, Process> = new Map();
  readonly #root: string = mkdtempSync(join(tmpdir(), "pserver-archive-"));
  #job: SimulatedJob;

  constructor(random: Random, variant: Variant = {}) {
    this.#world = new World(random);
    this.#variant = variant;
    this.#job = this.#world.job("old");
  }

  async run(): Promise<Report> {
    try {
      return await withSimulatedFiles(() => this.#run());
    } finally {
      rmSync(this.#root, { recursive: true, force: true });
    }
  }

  async #run(): Promise<Report> {
    const world = this.#world;
    const { job, cuts } = await prepare(world);
    this.#job = job;
    const ledger = new ArchiveLedger(this.#job, world.broker);
    world.onMessage = (process, message) => ledger.before(process, message);
    world.onPerformed = (process, message, answers) => ledger.after(process, message, answers);
    await world.quietly("archive", (process) => this.#archive(process, 0, true));
    await world.storm([
      { weight: 8, left: 6, may: () => world.seemsStuck(this.#runs), run: () => this.#start() },
      { weight: 20, left: 45, run: () => world.actOfHost(this.#job) },
      { weight: 16, left: 45, run: () => this.#job.push(world.random.below(SHARDS)) },
      { weight: 1, left: 1, run: () => this.#look(ledger) },
      { weight: 2, left: world.random.below(2), run: () => this.#rewind(cuts) },
    ]);
    world.calm();
    if (job.hasPlan) await world.quietly("rewind", (process) => job.rewind(process));
    await this.#look(ledger);
    await world.quietly("archive", (process) => this.#archive(process, 0, true));
    await this.#check(ledger);
    await this.#look(ledger);
    const { length: updates } = this.#job.updates;
    return { steps: world.processes.step, updates, ...countRuns(this.#runs) };
  }

  get #directory(): string {
    return join(this.#root, "archive");
  }

  #start(): void {
    const { random } = this.#world;
    const process = this.#world.start("archive", this.#variant.tampering?.("archive"));
    this.#runs.push(process);
    const machines = Array.from({ length: MACHINES }, (_, machine) => machine);
    const free = machines.filter((machine) => this.#holder(machine) === undefined);
    const machine = random.pick(random.chance(0.9) && free.length > 0 ? free : machines) ?? 0;
    const once = random.chance(0.3);
    process.do(() => this.#archive(process, machine, once));
  }

  /** Somebody goes back to a cut: all journals go on under the next generation. */
  #rewind(cuts: readonly Position[][]): void {
    const { random } = this.#world;
    const process = this.#world.start("rewind");
    process.do(() => this.#job.rewind(process, random.pick(cuts)));
  }

  /** Does what `pserver archive` does; returns true if it has ended in order. */
  async #archive(process: Process, machine: number, once: boolean): Promise<true> {
    const interrupt = new AbortController();
    if (!once) setTimeout(() => interrupt.abort(), this.#world.random.below(FOLLOWS_MS));
    const source = await BrokerHistory.over(process.connection, this.#job.name, process.name);
    const lock = async (): Promise<void> => this.#lock(process, machine);
    const flags = { job: this.#job.name, once, grace: GRACE_MS };
    const place = { source, directory: this.#directory, lock };
    try {
      await archiveJob(interrupt, silent(), flags, place);
      return true;
    } finally {
      if (this.#holders.get(machine) === process) this.#holders.delete(machine);
    }
  }

  /** Keeps out the archivers of the same machine, as long as this one is alive. */
  #lock(process: Process, machine: number): void {
    const holder = this.#holder(machine);
    if (holder !== undefined) throw new PserverError("STORE_IN_USE", `${holder.name} archives`);
    this.#holders.set(machine, process);
  }

  /** The archiver that has the lock of a machine. */
  #holder(machine: number): Process | undefined {
    const holder = this.#holders.get(machine);
    return holder?.link.isDead === true ? undefined : holder;
  }

  /** Reads as another process that no schedule interrupts. */
  async #read<Result>(
    read: (archive: ArchiveSource, live: BrokerHistory) => Promise<Result>,
  ): Promise<Result> {
    const connection = this.#world.processes.instant("history");
    return await new ProcessFiles().run(async () =>
      read(
        await ArchiveSource.open(this.#directory),
        await BrokerHistory.over(connection, this.#job.name, "history"),
      ),
    );
  }

  async #check(ledger: ArchiveLedger): Promise<void> {
    await this.#read(async (archive) => {
      const { damage } = await checkArchive(this.#directory, signal);
      promise(damage.length === 0, () => `the archive is damaged: ${damage[0]?.message}`);
      for (let shard = 0; shard < SHARDS; shard++) await ledger.checkComplete(archive.shard(shard));
    });
  }

  /**
   * The archive has what hosts were told that it has; what it and the broker have together gives the states that there
   * were, and points that both lack are refused.
   */
  async #look(ledger: ArchiveLedger): Promise<void> {
    await this.#read(async (archive, live) => {
      const joined = joinHistories(archive, live);
      for (let shard = 0; shard < SHARDS; shard++) {
        await ledger.checkTold(archive.shard(shard));
        const history = this.#variant.reading?.(joined.shard(shard)) ?? joined.shard(shard);
        await this.#replayShard(history);
      }
    });
  }

  async #replayShard(history: ShardHistory): Promise<void> {
    const { random, broker } = this.#world;
    const { shard } = history;
    const { subjects } = this.#job;
    const ranges = rebuildableRanges(await takeInventory(history));
    for (let replays = 0; replays < REPLAYS; replays++) {
      const generation = 1 + random.below(this.#job.newest(shard).manifest.generation);
      // A rewind may not have come so far that it makes the journal.
      const lastSeq = broker.findEver(subjects.journalStream(shard, generation))?.lastSeq ?? 0;
      const at = { generation, seq: random.below(lastSeq + 1) };
      const isKept = ranges.some(
        (range) =>
          range.generation === generation && range.firstSeq <= at.seq && at.seq <= range.lastSeq,
      );
      await this.#replayPoint(history, at, isKept);
    }
  }

  async #replayPoint(history: ShardHistory, at: Position, isKept: boolean): Promise<void> {
    const { shard } = history;
    const what = `shard ${shard} at ${at.generation}:${at.seq}`;
    const { subjects } = this.#job;
    const replayed = await replayShard(history, at, { subjects, signal }).catch((error: unknown) =>
      ensureError(error),
    );
    if (replayed instanceof PserverError) {
      const { code, message } = replayed;
      promise(!isKept, () => `${what} is kept, and not replayed: ${code}: ${message}`);
      promise(code === "HISTORY_LOST", () => `${what} is refused with ${code}: ${message}`);
      return;
    }
    const truth = await this.#job.stateAt(shard, at);
    const isSame = replayed.digest() === truth.digest();
    promise(isKept && isSame, () => `${what} is replayed wrongly`);
  }
}

/** The output of a command to which nobody listens. */
function silent(): Output {
  const stream = new Writable({ write: (_chunk, _encoding, done) => done() });
  return Output.open({ stdout: stream, stderr: stream }, {}, {});
}
