import type { NatsConnection } from "@nats-io/transport-node";
import type { Shard } from "../../actors/fold/shard.ts";
import { JobRemoval } from "../../actors/job/remove-job.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import { ensureError, JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import type { JobFacts } from "../source.ts";
import { FirstSnapshots } from "./first-snapshots.ts";
import { FoundParameters } from "./found-parameters.ts";
import type { KnownSettings } from "./known-settings.ts";
import { NewJob } from "./new-job.ts";
import { writeRecords } from "./ready-records.ts";
import type { Rebuild } from "./rebuild.ts";

/** Completed stage of a fork; before `complete`, no host joins the job. */
export type ForkStage = "begun" | `shard ${number}` | "parameters" | "complete";

/** Options of {@link forkJob}. */
export interface ForkOptions {
  /** To the broker that is to hold the new job, with the inbox of a host of that job. */
  readonly connection: NatsConnection;
  /** The id of the connection's inbox. */
  readonly host: string;
  /** Name of the new job. */
  readonly job: string;
  /** The job that it is made from. */
  readonly of: JobFacts;
  /** Settings of that job, from `knownSettings`; defaults hold for those that are not known. */
  readonly known: KnownSettings;
  /** The position of each shard to begin with. */
  readonly at: readonly Position[];
  /** Makes a shard as it was at its position; called for one shard after the other. */
  readonly rebuild: Rebuild;
  readonly signal: AbortSignal;
  /** Called after each stage. */
  readonly onStage?: (stage: ForkStage) => void;
}

/** Error codes of a run that another one has taken the job over from. */
const TAKEN_OVER: readonly string[] = ["BUSY", "NOT_OWNER"];

/** Time limit for one request of the removal of a job. */
const REMOVE_MS = 10_000;

/** A job made by a fork. */
export interface ForkedJob {
  readonly job: string;
  /** Ready parameters. */
  readonly parameters: number;
  /** Bytes of all values and optimizer slots. */
  readonly bytes: number;
  /** Names of parameters whose initialization had not come to its end, ascending. */
  readonly unfinished: readonly string[];
  /** Number of blocks that had gradients of a step that had not closed, which are discarded. */
  readonly openBlocks: number;
}

/**
 * Makes a job that begins with the state of another one. No host joins it before it is complete. If it fails,
 * what there is of the job is removed. If the process ends, or the broker cannot be reached, repeating the fork
 * completes the job, and removing the job removes what there is.
 * @throws JOB_EXISTS if there is a job of this name, unless it is an incomplete fork of the same job; EMPTY if
 * there is no parameter at that point; BUSY, NOT_OWNER if the same fork runs elsewhere; NO_SPACE; the errors of
 * `rebuild`; ABORTED.
 */
export async function forkJob(options: ForkOptions): Promise<ForkedJob> {
  const { connection, job, of, at, known, rebuild } = options;
  const subjects = new JobSubjects(job);
  const manager = await openJetStream(connection).jetstreamManager(false);
  // Rebuilt before anything is made: a history that does not reach back leaves no job behind.
  const first = await rebuild(0, at[0] as Position);
  const mark = { at, madeMs: Date.now() };
  const more = { known, rules: first.rules };
  const fork = await NewJob.begin({ connection, manager, subjects }, of, mark, more);
  try {
    return await fill(options, fork, first);
  } catch (error) {
    // Another run that has taken it over goes on with it.
    if (!TAKEN_OVER.includes(ensureError(error).code)) await removeQuietly(connection, job);
    throw error;
  }
}

/** Makes all of the job but its settings, which hosts wait for, and completes it. */
async function fill(options: ForkOptions, fork: NewJob, first: Shard): Promise<ForkedJob> {
  const { job, of, at, rebuild, signal, onStage } = options;
  onStage?.("begun");
  const found = new FoundParameters(of.shards);
  const snapshots = FirstSnapshots.open({ ...options, owner: fork.token });
  const sum = { bytes: 0, openBlocks: 0 };
  let shard: Shard | undefined = first;
  for (let number = 0; number < of.shards; number++) {
    signal.throwIfAborted();
    shard ??= await rebuild(number, at[number] as Position);
    sum.openBlocks += shard.detach();
    sum.bytes += shard.valueBytes;
    found.add(number, shard.saveState());
    await snapshots.commit(number, shard);
    onStage?.(`shard ${number}`);
    // Its memory is free before the next one is rebuilt.
    shard = undefined;
  }
  await fork.check();
  const parameters = found.parameters();
  const ready = parameters.filter(isReady);
  if (ready.length === 0) throw nothingThere(of.job);
  await writeRecords(fork.bucket, parameters);
  onStage?.("parameters");
  await fork.complete();
  onStage?.("complete");
  const unfinished = parameters.filter((parameter) => !isReady(parameter));
  const names = unfinished.map(({ declaration }) => declaration.name).sort();
  return { job, parameters: ready.length, ...sum, unfinished: names };
}

/** Removes what there is of the job, as far as the broker can be reached. */
async function removeQuietly(connection: NatsConnection, job: string): Promise<void> {
  const removal = new JobRemoval({ connection, job, etcd: undefined, timeoutMs: REMOVE_MS });
  // The error that ended the fork says more; "pserver remove" removes what stays.
  await removal.run(() => undefined).catch(() => undefined);
}

function isReady({ lifecycle }: Parameter): boolean {
  return lifecycle.state === "ready";
}

function nothingThere(job: string): PserverError {
  const message = `job ${job}: no parameter was initialized at that point`;
  return new PserverError("EMPTY", message, { job });
}
