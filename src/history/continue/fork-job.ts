import type { NatsConnection } from "@nats-io/transport-node";
import type { FoldState } from "../../actors/fold/fold-state.ts";
import type { Shard } from "../../actors/fold/shard.ts";
import { journalSettings } from "../../actors/job/job-settings.ts";
import { configBytesOf, type DeclaredUsage } from "../../actors/job/storage-plan.ts";
import { Journal } from "../../actors/journal/journal.ts";
import { continueShard } from "../../actors/journal/next-generation.ts";
import { SnapshotStore } from "../../actors/journal/snapshot-store.ts";
import type { Lifecycle } from "../../actors/lifecycle/machine.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import {
  type Declaration,
  type DeclaredParameter,
  ensureError,
  JobSubjects,
  type Layout,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import { dataBytesMaxOf } from "../../transport/bulk-transport.ts";
import { openJetStream, StreamPublisher } from "../../transport/jetstream.ts";
import { replayShard } from "../replay/replay-shard.ts";
import type { HistorySource, JobFacts } from "../source.ts";
import { type KnownSettings, NewJob } from "./new-job.ts";

/** A parameter under the highest epoch that any shard knows. */
interface NewestDeclaration {
  readonly epoch: number;
  readonly declaration: Declaration;
  readonly layout: Layout;
  readonly firstNumber: number;
  /** The trainer to which it was granted. */
  readonly trainer: string;
  readonly blocksMax: number;
  /** Number of its blocks that exist under this epoch. */
  present: number;
}

/**
 * The parameters of a job as the states of its shards show them. The job's own entries say how it is now, not how it
 * was at a point; the states do. A parameter is ready if all of its blocks exist under the epoch that was granted
 * last. The initialization of any other has not been finished: the parameter keeps its epoch, so that the next
 * initialization has a higher one.
 */
export class FoundParameters {
  readonly #found: Map<string, NewestDeclaration> = new Map();

  /** Adds the parameters that one shard knows. To be called once for each shard. */
  add({ blocks, declared = [] }: Pick<FoldState, "blocks" | "declared">): void {
    for (const each of declared) this.#take(each);
    for (const { parameter, epoch } of blocks) {
      const found = this.#found.get(parameter);
      if (found?.epoch === epoch) found.present += 1;
    }
  }

  /** Returns the parameters as entries of a job whose shards have begun with these states, in no order. */
  parameters(): Parameter[] {
    return [...this.#found.values()].map(
      ({ declaration, layout, firstNumber, blocksMax, ...found }) => {
        const { epoch, trainer, present } = found;
        const lifecycle: Lifecycle = {
          state: present === layout.blocks ? "ready" : "uninitialized",
          context: { epoch, trainer, session: 0, at: [], sealed: 0, revised: 0 },
        };
        const placed = { layout, firstNumber, blocksMax };
        return { declaration, ...placed, jobEpoch: 0, lifecycle, revision: 0 };
      },
    );
  }

  /** Number of names, and bytes of their configurations. */
  get usage(): Pick<DeclaredUsage, "parameters" | "configBytes"> {
    let configBytes = 0;
    for (const { declaration } of this.#found.values())
      configBytes += configBytesOf(declaration.config);
    return { parameters: this.#found.size, configBytes };
  }

  /** Keeps the declaration of the higher epoch, and the most blocks that any of them had. */
  #take(declared: DeclaredParameter): void {
    const { name, dtype, shape, config, epoch, layout, firstNumber, trainer } = declared;
    const known = this.#found.get(name);
    const blocksMax = Math.max(known?.blocksMax ?? 0, layout.blocks);
    if (known !== undefined && known.epoch >= epoch) {
      this.#found.set(name, { ...known, blocksMax });
      return;
    }
    const declaration = { name, dtype, shape, config };
    const placed = { layout, firstNumber, blocksMax };
    this.#found.set(name, { epoch, declaration, ...placed, trainer, present: 0 });
  }
}

/** Completed stage of a fork; before `complete`, no host joins the job. */
type ForkStage = "begun" | `shard ${number}` | "parameters" | "complete";

/** Options of {@link forkJob}. */
export interface ForkOptions {
  /** Connection to the broker that is to hold the new job, with the inbox of a host of that job. */
  readonly connection: NatsConnection;
  /** Id of the connection's inbox. */
  readonly host: string;
  /** Name of the new job. */
  readonly job: string;
  /** The job from which it is made. */
  readonly of: JobFacts;
  /** Number of shards of the new job. */
  readonly shards: number;
  /** Settings of that job, from `knownSettings`; defaults hold for those that are not known. */
  readonly known: KnownSettings;
  /** Position of each shard of the other job with which the new job begins. */
  readonly at: readonly Position[];
  /** Makes the state with which a shard of the new job begins; called for one shard after the other. */
  readonly makeShard: (shard: number) => Promise<Shard>;
  readonly signal: AbortSignal;
  /** Called after each stage. */
  readonly onStage?: (stage: ForkStage) => void;
}

/** A job made by a fork. */
export interface ForkedJob {
  readonly job: string;
  /** Number of ready parameters. */
  readonly parameters: number;
  /** Bytes of all values and optimizer slots. */
  readonly bytes: number;
  /** Names of parameters whose initialization had not been finished, ascending. */
  readonly unfinished: readonly string[];
  /** Number of blocks with gradients of a step that had not closed, which are discarded. */
  readonly openBlocks: number;
}

/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed, unless another run has gone on with it. If the process ends, or the broker cannot be reached, repeating the fork
 * completes the job, and removing the job removes what there is.
 * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job; EMPTY if
 * there is no parameter at that point; BUSY, NOT_OWNER if the same fork runs elsewhere; NO_SPACE; the errors of
 * `makeShard`; ABORTED.
 */
export async function forkJob(options: ForkOptions): Promise<ForkedJob> {
  const { connection, job, of, shards, at, known, makeShard } = options;
  const subjects = new JobSubjects(job);
  const manager = await openJetStream(connection).jetstreamManager(false);
  // Rebuilt before anything is made: if the history does not reach back so far, no job is left behind.
  const first = await makeShard(0);
  const origin = { at, madeMs: Date.now() };
  const facts = { job: of.job, synchronization: of.synchronization, shards };
  const fork = await NewJob.begin({ connection, manager, subjects }, facts, origin, known);
  try {
    return await writeJob(options, fork, first);
  } catch (error) {
    // The error that ended the fork says more; "pserver remove" removes what stays.
    await fork.remove(connection).catch(() => undefined);
    throw error;
  }
}

/** Writes all of the job but its settings, which hosts wait for, and completes it. */
async function writeJob(options: ForkOptions, fork: NewJob, first: Shard): Promise<ForkedJob> {
  const { connection, host, job, of, shards, makeShard, signal, onStage } = options;
  onStage?.("begun");
  const found = new FoundParameters();
  const publisher = StreamPublisher.open(connection, new JobSubjects(job).hostInbox(host));
  const sum = { bytes: 0, openBlocks: 0 };
  let shard: Shard | undefined = first;
  for (let number = 0; number < shards; number++) {
    signal.throwIfAborted();
    shard ??= await makeShard(number);
    sum.openBlocks += shard.detach();
    sum.bytes += shard.valueBytes;
    found.add(shard.saveState());
    await fork.space.reserve({ ...found.usage, heldBytes: sum.bytes });
    await writeShard(options, fork, { publisher, number, shard });
    onStage?.(`shard ${number}`);
    // Its memory is freed before the next one is rebuilt.
    shard = undefined;
  }
  const parameters = found.parameters();
  const ready = parameters.filter(isReady);
  if (ready.length === 0) throw nothingThere(of.job);
  await fork.complete(parameters, () => onStage?.("parameters"));
  onStage?.("complete");
  const unfinished = parameters.filter((parameter) => !isReady(parameter));
  const names = unfinished.map(({ declaration }) => declaration.name).sort();
  return { job, parameters: ready.length, ...sum, unfinished: names };
}

/** Attempts to store a shard while an earlier run, which has been overtaken, still writes. */
const TRIES_MAX = 4;

/**
 * Stores a state with which one shard of the new job begins, in place of whatever an interrupted run has left of it.
 * @throws BUSY if another run has taken the job over; NOT_OWNER if somebody else writes the shard's manifests.
 */
async function writeShard(
  { connection, host, job }: ForkOptions,
  fork: NewJob,
  { publisher, number, shard }: { publisher: StreamPublisher; number: number; shard: Shard },
): Promise<void> {
  const client = openJetStream(connection);
  const manager = await client.jetstreamManager(false);
  const place = { manager, client, subjects: new JobSubjects(job), shard: number };
  const store = new SnapshotStore({ ...place, publisher });
  const { journal: storage } = fork.settings;
  const journal = new Journal({ ...place, settings: journalSettings(fork.settings) });
  for (let tries = 1; ; tries++) {
    const left = await store.manifestEntries();
    const newest = left.at(-1);
    // Whoever takes the job over after this check replaces these writes, or makes them fail.
    await fork.check();
    try {
      await continueShard(
        { ...place, store, journal, storage, partBytesMax: dataBytesMaxOf(connection) },
        {
          ...{ shard, stored: new Map(), host, owner: fork.token },
          replaced: { seq: newest?.seq ?? 0, term: newest?.manifest?.term ?? 0 },
          // Generation 1 of a shard always begins with the empty state: whoever reads history relies on it.
          ...{ generation: 1, fallbacks: [], keepsPast: false },
        },
      );
      // They may be of another cut, and nobody must take them for earlier snapshots of this journal.
      await store.remove(left.map(({ seq }) => seq));
      return;
    } catch (error) {
      // An earlier run had passed its own check before this one began, and has written one more manifest.
      if (ensureError(error).code !== "NOT_OWNER" || tries === TRIES_MAX) throw error;
    }
  }
}

function isReady({ lifecycle }: Parameter): boolean {
  return lifecycle.state === "ready";
}

function nothingThere(job: string): PserverError {
  const message = `job ${job}: no parameter was initialized at that point`;
  return new PserverError("EMPTY", message, { job });
}

/** Makes a shard as it was at a position of its history. @throws the errors of `replayShard`. */
export type Rebuild = (shard: number, at: Position) => Promise<Shard>;

/**
 * Returns a function that rebuilds the shards of a source. `onProgress` is called now and then with a shard, and with
 * the number of records folded of those to fold.
 */
export function rebuildFrom(
  source: HistorySource,
  signal: AbortSignal,
  onProgress: (shard: number, doneRecords: number, totalRecords: number) => void = () => undefined,
): Rebuild {
  const subjects = new JobSubjects(source.job);
  return (shard, at) =>
    replayShard(source.shard(shard), at, {
      ...{ subjects, signal },
      onProgress: (done, total) => onProgress(shard, done, total),
    });
}
