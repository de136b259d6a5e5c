import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { readable } from "../../actors/fold/journal-record.ts";
import {
  type ArchivedShard,
  type ArchiverEntry,
  archiverKey,
  parseArchiverEntry,
  requireArchiverPlace,
  stoppedArchiverKey,
  toArchiverJson,
} from "../../actors/journal/archivers.ts";
import { type KvBucket, replaceEntry } from "../../actors/journal/kv-bucket.ts";
import { visible } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { ensureError, PserverError } from "../../protocol/index.ts";

/** How often an archiver renews its registration, at least in its grace time. */
const RENEWALS_PER_GRACE = 10;

/** The longest time between two renewals. */
const RENEW_MS_MAX = 2_000;

/** Dependencies of {@link ArchiverRegistration}. */
export interface RegistrationDeps {
  readonly bucket: Pick<KvBucket, "keys" | "read" | "create" | "update" | "remove">;
  /** Identity of the archive: whoever archives into it again takes its registration over. */
  readonly archive: string;
  /** Directory of the archive, for people. */
  readonly directory: string;
  readonly graceMs: number;
  /** Returns the newest archived positions, by shard. */
  readonly archived: () => readonly ArchivedShard[];
  /** Returns when the archive had all that the job had, by the wall clock; undefined before that is known. */
  readonly completeMs: () => number | undefined;
  /** Called after each renewal that failed; the next one comes in its time. */
  readonly onFailure: (error: PserverError) => void;
}

/**
 * Tells the hosts of a job how much an archiver has copied, so that they do not trim the rest. The newest run of an
 * archive has the registration: a run writes only over an entry of its own, so that one that was suspended changes
 * nothing once another one has taken over.
 */
export class ArchiverRegistration {
  readonly #deps: RegistrationDeps;
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;
  /** The renewal that is under way: with a slow broker only one must be. */
  #writing: Promise<void> | undefined;
  /** Tells the entries of a run from those of others. */
  #run = "";
  #revision: number | undefined;
  #isForgotten = false;
  #lost = new AbortController();
  #failure: PserverError | undefined;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
    this.#key = archiverKey(deps.archive);
  }

  /**
   * Aborted once this run has the registration no more. The reason is STORE_IN_USE if a later run has taken it over, and
   * TIMEOUT if hosts have waited for the grace time in vain.
   */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether hosts have removed the registration: then {@link start} begins another run. */
  get isForgotten(): boolean {
    return this.#isForgotten;
  }

  /**
   * Begins a run: registers in place of whoever is registered for the archive, and renews the registration from then on.
   * @returns the number of the run, which is higher than those of all runs before.
   * @throws QUOTA if the job has as many archivers as it may; the errors of {@link KvBucket}.
   */
  async start(): Promise<number> {
    this.stop();
    await this.#writing;
    await requireArchiverPlace(this.#deps.bucket, this.#deps.archive);
    this.#run = randomUUID();
    this.#lost = new AbortController();
    this.#isForgotten = false;
    this.#failure = undefined;
    this.#revision = undefined;
    const { bucket, graceMs } = this.#deps;
    let taken: number | undefined;
    for (let former: number | undefined; taken === undefined; ) {
      taken = await replaceEntry(bucket, this.#key, this.#entry(), former);
      if (taken === undefined) former = (await bucket.read(this.#key))?.revision;
    }
    this.#revision = taken;
    // Whoever has written the former entry may have stopped.
    await this.#forgetStopped();
    const renewMs = Math.min(RENEW_MS_MAX, graceMs / RENEWALS_PER_GRACE);
    this.#timer = setInterval(() => this.#renewInTime(), renewMs);
    return taken;
  }

  /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Renews the registration now. @throws the reason of {@link lost}; the errors of {@link KvBucket}. */
  async renew(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    this.#lost.signal.throwIfAborted();
    const writing = this.#write();
    // Whoever waits for it to end does not get its error.
    const ended = (): void => {
      this.#writing = undefined;
    };
    this.#writing = writing.then(ended, ended);
    await writing;
  }

  /**
   * Ends the renewals, and says why the archiver has ended; hosts wait for its grace time.
   * @throws as {@link renew}.
   */
  async fail(error: PserverError): Promise<void> {
    this.stop();
    this.#failure = error;
    await this.renew();
  }

  /**
   * Removes the registration, unless this run has it no more.
   * @throws the errors of {@link KvBucket}.
   */
  async end(): Promise<void> {
    this.stop();
    await this.#writing;
    const stored = await this.#read();
    if (stored?.run === this.#run) await this.#deps.bucket.remove(this.#key, stored.revision);
  }

  #renewInTime(): void {
    if (this.#writing !== undefined) return;
    this.renew().catch((error: unknown) => {
      const isTakenOver = this.#lost.signal.aborted && !this.#isForgotten;
      // That another run has taken over ends this one.
      if (!isTakenOver) this.#deps.onFailure(ensureError(error));
    });
  }

  /** Writes the entry over the one that this run has written. @throws the reason of {@link lost} if there is none. */
  async #write(): Promise<void> {
    const { bucket } = this.#deps;
    for (;;) {
      const known = this.#revision;
      // If the answer is lost, the entry is looked at again.
      this.#revision = undefined;
      if (known !== undefined) {
        this.#revision = await bucket.update(this.#key, this.#entry(), known);
        if (this.#revision !== undefined) return;
      }
      const stored = await this.#read();
      if (stored?.run !== this.#run) throw this.#lose(stored);
      this.#revision = stored.revision;
    }
  }

  #entry(): unknown {
    const { archive, graceMs, archived, completeMs } = this.#deps;
    const { code, message } = this.#failure ?? {};
    const entry: ArchiverEntry = {
      ...{ archiver: archive, run: this.#run, machine: hostname(), pid: process.pid, graceMs },
      writtenMs: Date.now(),
      ...defined({ completeMs: completeMs() }),
      ...(code !== undefined && message !== undefined && { failure: { code, message } }),
      shards: archived(),
    };
    return toArchiverJson(entry);
  }

  /** Reads what is registered for the archive: whose it is, unless it cannot be read, and its revision. */
  async #read(): Promise<(Partial<ArchiverEntry> & { readonly revision: number }) | undefined> {
    const stored = await this.#deps.bucket.read(this.#key);
    if (stored === undefined) return undefined;
    const { value, revision } = stored;
    return { ...readable(() => parseArchiverEntry(value, this.#key)), revision };
  }

  /** Notes that this run has the registration no more; returns why. */
  #lose(stored: Partial<ArchiverEntry> | undefined): PserverError {
    const { directory, graceMs } = this.#deps;
    this.stop();
    this.#isForgotten = stored === undefined;
    const { pid, machine = "" } = stored ?? {};
    const reason = this.#isForgotten
      ? new PserverError("TIMEOUT", `hosts have waited ${graceMs} ms for this archiver in vain`)
      : new PserverError(
          "STORE_IN_USE",
          `process ${pid} on ${visible(machine)} has taken the archive in ${directory} over`,
          { dir: directory, pid, machine },
        );
    this.#lost.abort(reason);
    return reason;
  }

  async #forgetStopped(): Promise<void> {
    const { bucket, archive } = this.#deps;
    const key = stoppedArchiverKey(archive);
    const stored = await bucket.read(key);
    if (stored !== undefined) await bucket.remove(key, stored.revision);
  }
}
