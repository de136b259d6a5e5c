import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  bucketStream,
  ensureError,
  type Fields,
  integerField,
  JETSTREAM_ERRORS,
  type JobSubjects,
  PserverError,
  TRAINERS_MAX,
} from "../../protocol/index.ts";
import { jetStreamErrorCode } from "../../transport/broker-error.ts";
import { type Clock, Repeater, systemClock } from "../concurrent.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import type { LifecycleService } from "../lifecycle/service.ts";

/** A check that a host repeats until it is stopped. */
export abstract class Watch {
  protected readonly clock: Clock;
  protected readonly repeater: Repeater;

  constructor(clock: Clock = systemClock) {
    this.clock = clock;
    this.repeater = new Repeater(() => this.check(), clock);
  }

  /** Checks at once, and then until {@link Watch.stop}. */
  start(): void {
    void this.repeater.start();
  }

  /** Stops checking and waits for a check under way. */
  async stop(): Promise<void> {
    await this.repeater.stop();
  }

  /** Checks once; returns how many milliseconds to pause before the next check. Must not throw. */
  protected abstract check(): Promise<number>;
}

/** Dependencies of {@link MembersWatch}. */
interface MembersWatchDeps {
  readonly service: Pick<LifecycleService, "expelLost" | "tellMembers">;
  /** The last statuses of the host's shards. */
  readonly statuses: () => readonly Fields[];
  /** The watch checks three times in a lease time. */
  readonly leaseMs: number;
  /** Called after each check that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Removes members whose lease is lost, so that nobody waits for them in the job's steps, and writes the
 * newest members into the journals of this host's shards that lack them.
 */
export class MembersWatch extends Watch {
  readonly #deps: MembersWatchDeps;
  /** Shards that are served, but were not when they were checked last. */
  readonly #fresh: Set<number> = new Set();
  /** The newest revision at the last check: later ones may still be on their way to the journals. */
  #known = 0;

  constructor(deps: MembersWatchDeps) {
    super(deps.clock);
    this.#deps = deps;
  }

  /** Notes that a shard is served: if its journal lacks the newest members, they are written at once. */
  serving(shard: number): void {
    this.#fresh.add(shard);
    void this.repeater.soon();
  }

  protected override async check(): Promise<number> {
    const fresh = new Set(this.#fresh);
    this.#fresh.clear();
    try {
      const { revision } = await this.#deps.service.expelLost();
      const behind = this.#deps.statuses().flatMap(({ shard, state, steps }) => {
        if (state !== "serving" || steps === undefined) return [];
        const number = Number(shard);
        const wanted = fresh.has(number) ? revision : this.#known;
        return integerField(asMap(steps, "steps"), "revision") < wanted ? [number] : [];
      });
      this.#known = revision;
      if (behind.length > 0) await this.#deps.service.tellMembers(behind);
    } catch (error) {
      for (const shard of fresh) this.#fresh.add(shard);
      this.#deps.onError(ensureError(error));
    }
    return this.#deps.leaseMs / 3;
  }
}

/** A shard with this many trainers in its table is due for a sweep. */
const SWEEP_TRAINERS = TRAINERS_MAX / 4;

/** A shard is due again when its table has this many more trainers than were live after the last sweep. */
const SWEEP_GROWTH = TRAINERS_MAX / 8;

/**
 * Time after which a full table is swept again even if all trainers in it were live: they may have left. A sweep
 * reads the entries of all trainers, which is too expensive for every half second.
 */
const FULL_AGAIN_MS = 10_000;

/** Time between checks of the tables: many short sessions fill them within seconds. */
const CHECK_MS = 500;

/** Dependencies of {@link SessionsWatch}. */
interface SessionsWatchDeps {
  readonly service: Pick<LifecycleService, "endSessions" | "checkEntries">;
  /** The last statuses of the host's shards. */
  readonly statuses: () => readonly Fields[];
  /** Called after each check that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** The last sweep that was written into a shard's journal: its position, and how many sessions are live. */
interface Sweep {
  readonly generation: number;
  readonly seq: number;
  readonly live: number;
  /** When it was written, by the host's clock. */
  readonly atMs: number;
}

/**
 * Keeps the tables of trainers of a host's shards from filling up with trainers that are gone: a shard with many
 * trainers is told which sessions have ended, and which were never given. Many sessions share one sweep, and shards
 * with few trainers cost nothing.
 */
export class SessionsWatch extends Watch {
  readonly #deps: SessionsWatchDeps;
  readonly #sweeps: Map<number, Sweep> = new Map();
  #areEntriesChecked = false;

  constructor(deps: SessionsWatchDeps) {
    super(deps.clock);
    this.#deps = deps;
  }

  /**
   * Finds out, once, whether the bucket has lost entries; repeated while it cannot be read, and until every shard has
   * been compared with it.
   */
  async #checkEntries(): Promise<void> {
    try {
      this.#areEntriesChecked = await this.#deps.service.checkEntries();
    } catch (caught) {
      const error = ensureError(caught);
      if (error.retryable) return;
      this.#areEntriesChecked = true;
      this.#deps.onError(error);
    }
  }

  protected override async check(): Promise<number> {
    if (!this.#areEntriesChecked) await this.#checkEntries();
    try {
      const due = this.#deps.statuses().filter((status) => this.#isDue(status));
      if (due.length > 0) await this.#end(due.map(({ shard }) => Number(shard)));
    } catch (error) {
      this.#deps.onError(ensureError(error));
    }
    return CHECK_MS;
  }

  async #end(shards: readonly number[]): Promise<void> {
    const { live, at } = await this.#deps.service.endSessions(shards);
    for (const [shard, position] of at) {
      this.#sweeps.set(shard, { ...position, live, atMs: this.clock.now() });
    }
  }

  #isDue({ shard, state, senders, generation, seq }: Fields): boolean {
    if (state !== "serving") return false;
    const trainers = integerField(asMap(senders, "senders"), "trainers");
    if (trainers < SWEEP_TRAINERS) return false;
    const sweep = this.#sweeps.get(Number(shard));
    if (sweep === undefined) return true;
    // The status does not show the effect of the last sweep before the shard has folded it.
    const isFolded =
      Number(generation) > sweep.generation ||
      (Number(generation) === sweep.generation && Number(seq) >= sweep.seq);
    if (!isFolded) return false;
    if (trainers >= sweep.live + SWEEP_GROWTH) return true;
    return trainers >= TRAINERS_MAX && this.clock.now() - sweep.atMs >= FULL_AGAIN_MS;
  }
}

/** Dependencies of {@link LossesWatch}. */
interface LossesWatchDeps {
  readonly service: Pick<LifecycleService, "takeBackLost">;
  /** Lease time; a failed check is repeated after a third of it. */
  readonly leaseMs: number;
  /** Called with what a shard has lost, if anything. */
  readonly onTakenBack: (shard: number, taken: TakenBack) => void;
  /** Called after each check that failed. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Checks a shard with its journal in memory each time that it begins to be served: compares the job's entries with
 * the shard's blocks, and makes what is lost initializable again.
 */
export class LossesWatch extends Watch {
  readonly #deps: LossesWatchDeps;
  /** Shards that have begun to be served and were not checked since. */
  readonly #fresh: Set<number> = new Set();
  #isStopped = false;

  constructor(deps: LossesWatchDeps) {
    super(deps.clock);
    this.#deps = deps;
  }

  /**
   * Stops checking. The result of a check under way, which may ask for a shard that has no owner any more, is
   * ignored.
   */
  override stop(): Promise<void> {
    this.#isStopped = true;
    return super.stop();
  }

  /** Notes that a shard is served from now on. */
  serving(shard: number): void {
    this.#fresh.add(shard);
    void this.repeater.soon();
  }

  protected override async check(): Promise<number> {
    for (const shard of [...this.#fresh]) {
      this.#fresh.delete(shard);
      try {
        const taken = await this.#deps.service.takeBackLost(shard);
        if (taken.parameters.length > 0 || taken.isJob) this.#deps.onTakenBack(shard, taken);
      } catch (error) {
        if (this.#isStopped) break;
        this.#fresh.add(shard);
        this.#deps.onError(ensureError(error));
      }
    }
    return this.#deps.leaseMs / 3;
  }
}

/** Dependencies of {@link JobWatch}. */
interface JobWatchDeps {
  readonly connection: Pick<NatsConnection, "info">;
  readonly manager: { readonly streams: Pick<JetStreamManager["streams"], "info"> };
  readonly subjects: JobSubjects;
  /** When the job's bucket was made. */
  readonly created: string;
  readonly leaseMs: number;
  /** Called once, when it is certain that the broker does not hold the job any more. */
  readonly onGone: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Finds out whether the broker still holds the job: it may have been started again on an empty store, or on that of
 * another job. Then the host's state of the job is of no use, and what the host writes could be taken for a part of a
 * new job of the same name. Checks once in a lease time, and after each reconnection.
 *
 * A job that has lost only its records, or only its snapshots, is not gone: its operator may put them back.
 */
export class JobWatch extends Watch {
  readonly #deps: JobWatchDeps;
  /** When a check first found nothing of the job, if none has found it since. */
  #missingSinceMs: number | undefined;

  constructor(deps: JobWatchDeps) {
    super(deps.clock);
    this.#deps = deps;
  }

  /** Begins to check, first after a lease time. */
  override start(): void {
    void this.repeater.start(this.#deps.leaseMs);
  }

  /** Checks soon: the connection to the broker is back. */
  reconnected(): void {
    this.#missingSinceMs = undefined;
    void this.repeater.soon();
  }

  protected override async check(): Promise<number> {
    const { leaseMs, onGone } = this.#deps;
    const problem = await this.#findProblem();
    if (problem !== undefined) {
      void this.stop();
      onGone(problem);
    }
    return this.#missingSinceMs === undefined ? leaseMs : leaseMs / 10;
  }

  /** Returns why the job is gone; undefined if it is there, or if that is not certain. */
  async #findProblem(): Promise<PserverError | undefined> {
    const { subjects, created, connection, leaseMs } = this.#deps;
    const records = bucketStream(subjects.bucket());
    try {
      const found = await this.#createdOf(records);
      if (found !== undefined) {
        this.#missingSinceMs = undefined;
        return found === created
          ? undefined
          : this.#gone(`another one of this name was made at ${found}`);
      }
      if ((await this.#createdOf(subjects.snapshotStream())) !== undefined) return undefined;
    } catch {
      // A broker that does not answer says nothing about the job.
      this.#missingSinceMs = undefined;
      return undefined;
    }
    // A server of a cluster that has just started may not have read its streams yet.
    this.#missingSinceMs ??= this.clock.now();
    const isCertain =
      connection.info?.cluster === undefined || this.clock.now() - this.#missingSinceMs >= leaseMs;
    return isCertain ? this.#gone("its store was emptied") : undefined;
  }

  /** Returns when a stream was made; undefined if there is none. */
  async #createdOf(stream: string): Promise<string | undefined> {
    try {
      return (await this.#deps.manager.streams.info(stream)).created;
    } catch (error) {
      if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return undefined;
      throw error;
    }
  }

  #gone(what: string): PserverError {
    const { subjects, created } = this.#deps;
    const { job } = subjects;
    const text =
      `job ${job}, made at ${created}, is gone from the broker: ${what}. Start the broker on the right store, or start ` +
      `this host again, which makes the job anew, and give it a saved model with "pserver load"; from an archive, ` +
      `"pserver fork ${job} --archive DIR --no-broker --at now --as NEW" makes job NEW`;
    return new PserverError("JOB_DAMAGED", text, { job: subjects.job, expected: created });
  }
}
