import { setTimeout as delay } from "node:timers/promises";
import { type JobAdmin, openAdmin } from "../client/admin/job-admin.ts";
import { readJobStatus } from "../client/admin/job-status.ts";
import { resolveSettings } from "../client/wire/broker-settings.ts";
import { openHistory } from "../history/open-journal.ts";
import { type UpdateEntry, updateEntry } from "../history/reports/update-entry.ts";
import type { HistorySource } from "../history/source.ts";
import { ensureError } from "../protocol/index.ts";
import type { ConnectionSettings } from "../transport/connection.ts";
import type { BrokerAccess } from "./broker-access.ts";
import type { ServerEvent } from "./http-server.ts";
import { TapeTail } from "./tape-tail.ts";

/** How often a job is looked at while somebody watches it, and how long after it could not be. */
const LOOK_MS = 1_000;
const AGAIN_MS = 3_000;

/** How long the broker or a host may take to answer. */
const ANSWER_MS = 5_000;

/** Updates that wait for one watcher, who hears of others only how many were dropped. */
const WAITING_MAX = 1_000;

/** How long after its last record the tape of a shard is looked at: lines come about a second after their records. */
const LINES_COME_MS = 5_000;

/** Watches jobs for those who look at them live: however many look at one, it is asked once. */
export class LiveJobs {
  readonly #access: () => BrokerAccess;
  readonly #jobs: Map<string, LiveJob> = new Map();

  constructor(access: () => BrokerAccess) {
    this.#access = access;
  }

  /**
   * Yields what is new of a job until the signal is aborted: `status`, as `pserver status --json` prints it; `updates`,
   * as the log has them, from now on; `problem`, an error for which the job cannot be seen at the moment; `limited`, an
   * error for which only its status can be seen: a user of the broker may be allowed to ask hosts, and not to read.
   */
  async *events(job: string, signal: AbortSignal): AsyncGenerator<ServerEvent, void, undefined> {
    const watched = this.#jobs.get(job) ?? new LiveJob(job, this.#access);
    this.#jobs.set(job, watched);
    const watcher = watched.add();
    const wake = (): void => watcher.wake();
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        yield* watcher.take();
        // The signal may have been aborted while a receiver took its time.
        if (!signal.aborted) await watcher.more();
      }
    } finally {
      signal.removeEventListener("abort", wake);
      if (watched.remove(watcher)) this.#jobs.delete(job);
    }
  }
}

/** What one watcher has not been sent yet; bounded. */
class Watcher {
  #status: unknown;
  #problem: unknown;
  #limited: unknown;
  #updates: UpdateEntry[] = [];
  #dropped = 0;
  #wake: (() => void) | undefined;

  status(status: unknown): void {
    this.#status = status;
    this.#problem = undefined;
    this.wake();
  }

  problem(problem: unknown): void {
    this.#problem = problem;
    this.wake();
  }

  limited(limited: unknown): void {
    this.#limited = limited;
    this.wake();
  }

  /** Takes new updates; `dropped` more had come. */
  updates(updates: readonly UpdateEntry[], dropped: number): void {
    this.#updates.push(...updates);
    this.#dropped += dropped;
    const excess = this.#updates.length - WAITING_MAX;
    if (excess > 0) {
      this.#updates.splice(0, excess);
      this.#dropped += excess;
    }
    this.wake();
  }

  /** Settles when there is something to take. */
  async more(): Promise<void> {
    const single = [this.#status, this.#problem, this.#limited];
    const hasMore = single.some((each) => each !== undefined) || this.#updates.length > 0;
    if (!hasMore) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
  }

  wake(): void {
    this.#wake?.();
  }

  *take(): Generator<ServerEvent, void, undefined> {
    const [status, problem, limited] = [this.#status, this.#problem, this.#limited];
    const [updates, dropped] = [this.#updates, this.#dropped];
    this.#status = undefined;
    this.#problem = undefined;
    this.#limited = undefined;
    this.#updates = [];
    this.#dropped = 0;
    if (status !== undefined) yield { event: "status", data: status };
    if (updates.length > 0) yield { event: "updates", data: { updates, dropped } };
    if (problem !== undefined) yield { event: "problem", data: problem };
    if (limited !== undefined) yield { event: "limited", data: limited };
  }
}

/** Looks at one job again and again while it has watchers. */
class LiveJob {
  readonly #job: string;
  readonly #access: () => BrokerAccess;
  readonly #watchers: Set<Watcher> = new Set();
  readonly #end = new AbortController();
  #status: unknown;
  #limited: unknown;

  constructor(job: string, access: () => BrokerAccess) {
    this.#job = job;
    this.#access = access;
  }

  add(): Watcher {
    const watcher = new Watcher();
    if (this.#status !== undefined) watcher.status(this.#status);
    if (this.#limited !== undefined) watcher.limited(this.#limited);
    this.#watchers.add(watcher);
    if (this.#watchers.size === 1) void this.#look();
    return watcher;
  }

  /** Returns whether the last watcher has gone; then the job is looked at no longer. */
  remove(watcher: Watcher): boolean {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return false;
    this.#end.abort();
    return true;
  }

  async #look(): Promise<void> {
    const { signal } = this.#end;
    const tail = new TapeTail(Date.now());
    while (!signal.aborted) {
      try {
        await this.#follow(tail, signal);
      } catch (thrown) {
        const error = ensureError(thrown);
        for (const watcher of this.#watchers) watcher.problem(error.toWire());
      }
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Follows the job over connections of its own. @throws if it cannot be seen. */
  async #follow(tail: TapeTail, signal: AbortSignal): Promise<void> {
    const { broker, environment, asker } = this.#access();
    const job = this.#job;
    const how = { connectTimeoutMs: ANSWER_MS, timeoutMs: ANSWER_MS, signal };
    const admin = await openAdmin({ job, broker, environment, trainer: asker, ...how });
    try {
      const source = await this.#openLog(resolveSettings(broker, environment));
      try {
        await this.#poll(admin, source, tail, signal);
      } finally {
        await source?.close();
      }
    } finally {
      await admin.close();
    }
  }

  /** Opens the job's log; undefined, and all watchers are told, if this user may not read it. */
  async #openLog(connection: ConnectionSettings): Promise<HistorySource | undefined> {
    try {
      const source = await openHistory({ kind: "broker", connection, job: this.#job });
      this.#limited = undefined;
      return source;
    } catch (thrown) {
      const error = ensureError(thrown);
      if (error.code !== "DENIED") throw error;
      this.#limited = error.toWire();
      for (const watcher of this.#watchers) watcher.limited(this.#limited);
      return undefined;
    }
  }

  async #poll(
    admin: JobAdmin,
    source: HistorySource | undefined,
    tail: TapeTail,
    signal: AbortSignal,
  ): Promise<void> {
    // Shards in which nothing happens cost nothing.
    const moved = new Map<number, { readonly seq: unknown; readonly timeMs: number }>();
    while (!signal.aborted) {
      const status = await readJobStatus(admin, this.#job);
      this.#status = status;
      for (const watcher of this.#watchers) watcher.status(status);
      const nowMs = Date.now();
      for (const { shard, seq } of status.shards) {
        if (moved.get(shard)?.seq !== seq) moved.set(shard, { seq, timeMs: nowMs });
      }
      const busy = [...moved].flatMap(([shard, { timeMs }]) =>
        nowMs - timeMs < LINES_COME_MS ? [shard] : [],
      );
      if (source !== undefined && busy.length > 0) {
        const { updates, dropped } = await tail.read(source, busy, signal);
        const entries = updates.map(updateEntry);
        if (entries.length > 0) {
          for (const watcher of this.#watchers) watcher.updates(entries, dropped);
        }
      }
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
