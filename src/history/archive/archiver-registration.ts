import { hostname } from "node:os";
import {
  type ArchivedShard,
  type ArchiverRecord,
  archiverKey,
  toArchiverJson,
} from "../../actors/archivers/archiver-record.ts";
import { type KvBucket, replaceEntry } from "../../actors/jetstream/kv-bucket.ts";
import { ensureError, type PserverError } from "../../protocol/index.ts";

/** How often an archiver renews its registration, at least in its grace time. */
const RENEWALS_PER_GRACE = 10;

/** The longest time between two renewals. */
const RENEW_MS_MAX = 2_000;

/** Dependencies of {@link ArchiverRegistration}. */
export interface RegistrationDeps {
  readonly records: Pick<KvBucket, "read" | "create" | "update" | "remove">;
  /** Identity of the archive: who archives into it again takes its registration over. */
  readonly archive: string;
  readonly graceMs: number;
  /** What is archived now, by shard. */
  readonly archived: () => readonly ArchivedShard[];
  /** Called for a failure to renew; it is repeated. */
  readonly onFailure: (error: PserverError) => void;
}

/** Tells the hosts of a job what an archiver has copied, so that they do not trim the rest. */
export class ArchiverRegistration {
  readonly #deps: RegistrationDeps;
  readonly #key: string;
  #timer: NodeJS.Timeout | undefined;
  /** The renewal under way: a slow broker must not pile them up. */
  #writing: Promise<void> | undefined;
  #revision: number | undefined;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
    this.#key = archiverKey(deps.archive);
  }

  /** Registers, and renews the registration from then on. @throws the errors of {@link KvBucket}. */
  async start(): Promise<void> {
    await this.#write();
    const renewMs = Math.min(RENEW_MS_MAX, this.#deps.graceMs / RENEWALS_PER_GRACE);
    this.#timer = setInterval(() => this.#renew(), renewMs);
  }

  /** Ends the renewals; the registration stays until hosts have waited for its grace time. */
  stop(): void {
    clearInterval(this.#timer);
  }

  /** Removes the registration. @throws the errors of {@link KvBucket}. */
  async end(): Promise<void> {
    this.stop();
    await this.#writing;
    const stored = await this.#deps.records.read(this.#key);
    if (stored !== undefined) await this.#deps.records.remove(this.#key, stored.revision);
  }

  #renew(): void {
    this.#writing ??= this.#write()
      .catch((error: unknown) => {
        this.#revision = undefined;
        this.#deps.onFailure(ensureError(error));
      })
      .finally(() => {
        this.#writing = undefined;
      });
  }

  /** Writes the record over whatever is there; hosts may have removed it. */
  async #write(): Promise<void> {
    const { records, archive, graceMs, archived } = this.#deps;
    const record: ArchiverRecord = {
      ...{ archiver: archive, machine: hostname(), pid: process.pid, graceMs },
      writtenMs: Date.now(),
      shards: archived(),
    };
    const json = toArchiverJson(record);
    for (;;) {
      this.#revision = await replaceEntry(records, this.#key, json, this.#revision);
      if (this.#revision !== undefined) return;
      this.#revision = (await records.read(this.#key))?.revision;
    }
  }
}
