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
import { readTapePage } from "./tape-page.ts";

/** How often a job is looked at while somebody watches it, and how long after it could not be. */
const LOOK_MS = 1_000;
const AGAIN_MS = 3_000;

/** How long the broker or a host may take to answer. */
const ANSWER_MS = 5_000;

/** Updates that are read at a time, and that wait for one watcher, who hears of no more than how many were dropped. */
const PAGE_UPDATES = 500;
const WAITING_MAX = 1_000;

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

  updates(updates: readonly UpdateEntry[]): void {
    this.#updates.push(...updates);
    const dropped = this.#updates.length - WAITING_MAX;
    if (dropped > 0) {
      this.#updates.splice(0, dropped);
      this.#dropped += dropped;
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
    let after: string | undefined;
    while (!signal.aborted) {
      try {
        after = await this.#follow(after, signal);
      } catch (thrown) {
        const error = ensureError(thrown);
        for (const watcher of this.#watchers) watcher.problem(error.toWire());
      }
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Follows the job over connections of its own; `after`: where its log was left. @throws if it cannot be seen. */
  async #follow(after: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { broker, environment, asker } = this.#access();
    const job = this.#job;
    const how = { connectTimeoutMs: ANSWER_MS, timeoutMs: ANSWER_MS, signal };
    const admin = await openAdmin({ job, broker, environment, trainer: asker, ...how });
    try {
      const source = await this.#openLog(resolveSettings(broker, environment));
      try {
        return await this.#poll(admin, source, after, signal);
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
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    let next = after;
    const sinceMs = Date.now();
    while (!signal.aborted) {
      const status = await readJobStatus(admin, this.#job);
      this.#status = status;
      for (const watcher of this.#watchers) watcher.status(status);
      const query = { parameter: undefined, trainer: undefined, sinceMs, after: next };
      const page =
        source && (await readTapePage(source, { ...query, limit: PAGE_UPDATES, signal }));
      next = page?.next;
      const updates = page?.updates.map(updateEntry) ?? [];
      if (updates.length > 0) for (const watcher of this.#watchers) watcher.updates(updates);
      const pauseMs = updates.length === PAGE_UPDATES ? 0 : LOOK_MS;
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
    return next;
  }
}
