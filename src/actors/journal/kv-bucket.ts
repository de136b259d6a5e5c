import {
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
  StorageType,
} from "@nats-io/jetstream";
import { type KV, Kvm, type KvStatus } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  asMap,
  bucketStream,
  checksum,
  type ErrorDetails,
  ensureError,
  type Fields,
  JETSTREAM_ERRORS,
  PserverError,
} from "../../protocol/index.ts";
import {
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import { openJetStream, type StoreCondition, StreamPublisher } from "../../transport/jetstream.ts";
import { brokerCall, readStream } from "./streams.ts";

/** An entry: its JSON value, and the revision that an update must name. */
export interface KvEntry {
  readonly value: unknown;
  /** Rises with every write to any key of the bucket. */
  readonly revision: number;
}

/**
 * A bucket of small JSON values that change by compare-and-swap only. A read sees every write that was answered
 * before the read began, unless the leader that answers has been replaced and has not heard of it. So decide by the
 * compare-and-swap that follows the read.
 *
 * An entry ends with a checksum of its key and value. The methods that read throw JOB_DAMAGED, with the key in the
 * details, for an entry that is not as it was written, and for one that the broker lists but cannot read.
 *
 * Every method throws TIMEOUT, JETSTREAM_UNAVAILABLE, CLOSED or the like when the broker does not answer, a write
 * also JOURNAL_FULL or JOURNAL_FAULT when it cannot store. A write that ended so may have happened or may yet happen:
 * read again before deciding.
 */
export interface KvBucket {
  /** Returns when the bucket was made, as text; this distinguishes it from another bucket of the same name. */
  created(): Promise<string>;
  /** Reads the entry under `key`; undefined if there is none. */
  read(key: string): Promise<KvEntry | undefined>;
  /** Writes an entry that does not exist and returns its revision; undefined if it exists. */
  create(key: string, value: unknown): Promise<number | undefined>;
  /**
   * Replaces the entry of that revision; undefined if somebody else has written since. `id`: a name of this write that
   * no other has, for {@link writeAfter}.
   */
  update(key: string, value: unknown, revision: number, id?: string): Promise<number | undefined>;
  /**
   * Writes an entry, whatever is under `key`, if the last write to any key of the bucket is the one named `lastId`;
   * `id` names this write. Returns its revision; undefined if somebody else has written since. Repeated within two
   * minutes, it is made once, and has the same result. Calls that do not wait for each other take effect in their
   * order.
   */
  writeAfter(key: string, value: unknown, id: string, lastId: string): Promise<number | undefined>;
  /** Removes the entry of that revision; false if somebody else has written since. */
  remove(key: string, revision: number): Promise<boolean>;
  /** Returns the revision of the last write to any key; 0 before the first. */
  lastRevision(): Promise<number>;
  /**
   * Writes an entry in the place of whatever was written under `key` up to a revision, also of what cannot be read.
   * Returns the new revision; undefined if somebody else has written since.
   */
  overwrite(key: string, value: unknown, upToRevision: number): Promise<number | undefined>;
  /** Lists every key that begins with `prefix`, "" or a text that ends in a dot, in no order. */
  keys(prefix: string): Promise<string[]>;
  /**
   * Reports every entry under such keys that was written after a revision, in the order of writes, and returns the
   * revision after which to ask next. It sees every write that was answered before it began. Only for keys that are
   * never removed: removals leave no trace.
   */
  changes(
    prefix: string,
    afterRevision: number,
    onEntry: (key: string, entry: KvEntry) => void,
  ): Promise<number>;
}

/**
 * Replaces the entry of that revision, or writes the first entry if the revision is undefined. Returns the new
 * revision; undefined if somebody else has written since.
 */
export async function replaceEntry(
  bucket: Pick<KvBucket, "create" | "update">,
  key: string,
  value: unknown,
  revision: number | undefined,
): Promise<number | undefined> {
  return revision === undefined
    ? await bucket.create(key, value)
    : await bucket.update(key, value, revision);
}

/** Options of {@link openBucket}: where and how the bucket is kept. */
export interface BucketOptions {
  readonly connection: NatsConnection;
  readonly bucket: string;
  readonly storage: "file" | "memory";
  /** Number of replicas. By default 1 for a new bucket, and unchanged for an existing one. */
  readonly replicas?: number;
  /** Limit of a new bucket, which the broker reserves; none by default. */
  readonly bytesMax?: number;
  /** How long an entry lives after it was written; for ever by default. */
  readonly ttlMs?: number;
  /** Timeout of one request to the broker; 5 s by default, or a fifth of `ttlMs`. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
/** Requests that fit into the lifetime of an entry: a lease must survive a lost request or two. */
const REQUESTS_PER_TTL = 5;

/**
 * Opens a JetStream KV bucket; makes it if it does not exist.
 * @throws JOB_EXISTS if the bucket is kept in another way than asked for.
 */
export async function openBucket(options: BucketOptions): Promise<KvBucket> {
  const { connection, bucket, ttlMs } = options;
  const timeoutMs = ttlMs === undefined ? TIMEOUT_MS : Math.ceil(ttlMs / REQUESTS_PER_TTL);
  return await open(connection, bucket, options.timeoutMs ?? timeoutMs, async (kvm) => {
    const kv = await kvm.create(bucket, {
      history: 1,
      storage: options.storage === "file" ? StorageType.File : StorageType.Memory,
      replicas: options.replicas ?? 1,
      // Direct reads may be answered by a replica that lags: no lock can be built on them.
      allow_direct: false,
      ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
      ...(options.bytesMax === undefined ? {} : { max_bytes: options.bytesMax }),
    });
    // Opening an existing bucket does not compare its configuration.
    const status = await kv.status();
    checkBucket(options, status);
    return { kv, created: status.streamInfo.created };
  });
}

/**
 * Opens an existing bucket without asking the broker for it. If it does not exist, every method throws
 * JETSTREAM_UNAVAILABLE.
 */
export async function openExistingBucket(
  connection: NatsConnection,
  bucket: string,
  timeoutMs: number = TIMEOUT_MS,
): Promise<KvBucket> {
  return await open(connection, bucket, timeoutMs, async (kvm) => ({
    kv: await kvm.open(bucket, { allow_direct: false }),
    created: undefined,
  }));
}

async function open(
  connection: NatsConnection,
  bucket: string,
  timeoutMs: number,
  openKv: (kvm: Kvm) => Promise<Pick<JetStreamBucketDeps, "kv" | "created">>,
): Promise<KvBucket> {
  return await brokerCall(`opening the bucket ${bucket}`, { bucket }, async () => {
    const client = openJetStream(connection, timeoutMs);
    const manager = await client.jetstreamManager();
    const opened = await openKv(new Kvm(client));
    return new JetStreamBucket({ connection, client, manager, ...opened, bucket, timeoutMs });
  });
}

function checkBucket(options: BucketOptions, status: KvStatus): void {
  const expected = {
    history: 1,
    storage: options.storage,
    replicas: options.replicas ?? status.replicas,
    ttlMs: options.ttlMs ?? 0,
  };
  const received = {
    history: status.history,
    storage: status.storage,
    replicas: status.replicas,
    ttlMs: status.ttl,
  };
  const [wanted, found] = [JSON.stringify(expected), JSON.stringify(received)];
  if (wanted === found) return;
  throw new PserverError(
    "JOB_EXISTS",
    `bucket ${options.bucket} exists with other settings: expected ${wanted}; received ${found}`,
    { bucket: options.bucket, expected, received },
  );
}

/** Dependencies of {@link JetStreamBucket}. */
interface JetStreamBucketDeps {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  readonly kv: KV;
  /** When the bucket was made; undefined until it is asked for. */
  readonly created: string | undefined;
  readonly bucket: string;
  readonly timeoutMs: number;
}

class JetStreamBucket implements KvBucket {
  readonly #deps: JetStreamBucketDeps;
  readonly #bucket: string;
  #created: string | undefined;
  /** Opened by the first write, so that a reader subscribes to nothing. */
  #publisher: StreamPublisher | undefined;

  constructor(deps: JetStreamBucketDeps) {
    this.#deps = deps;
    this.#bucket = deps.bucket;
    this.#created = deps.created;
  }

  async created(): Promise<string> {
    this.#created ??= await this.#attempt("looking at", "", async () => {
      const info = await this.#deps.manager.streams.info(bucketStream(this.#bucket));
      return info.created;
    });
    return this.#created;
  }

  async read(key: string): Promise<KvEntry | undefined> {
    return await this.#attempt("reading", key, async () => {
      for (let tries = 1; ; tries++) {
        const entry = await this.#deps.kv.get(key);
        if (entry !== null) return this.#entry(key, entry.string(), entry.revision);
        // The broker answers in the same way for an entry that it cannot read. An entry that is listed and still
        // not found has not been written in between.
        if ((await this.#listed(key)).length === 0) return undefined;
        if (tries === READS_MAX) throw this.#damaged(key, UNREADABLE);
      }
    });
  }

  async create(key: string, value: unknown): Promise<number | undefined> {
    return await this.#swap("creating", key, value, { lastSeq: 0 });
  }

  async update(
    key: string,
    value: unknown,
    revision: number,
    id?: string,
  ): Promise<number | undefined> {
    return await this.#swap("updating", key, value, { lastSeq: revision, id });
  }

  async writeAfter(
    key: string,
    value: unknown,
    id: string,
    lastId: string,
  ): Promise<number | undefined> {
    return await this.#swap("writing", key, value, { id, lastId });
  }

  async remove(key: string, revision: number): Promise<boolean> {
    return await this.#attempt("removing", key, async () => {
      try {
        // Removes the message of one revision, not the key, so that a newer entry stays untouched.
        return await this.#deps.manager.streams.deleteMessage(bucketStream(this.#bucket), revision);
      } catch (error) {
        const isRefused = jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_REMOVED;
        if (isRefused && (await this.read(key))?.revision !== revision) return false;
        throw error;
      }
    });
  }

  async lastRevision(): Promise<number> {
    return await this.#attempt("looking at", "", async () => {
      const info = await this.#deps.manager.streams.info(bucketStream(this.#bucket));
      return info.state.last_seq;
    });
  }

  async overwrite(key: string, value: unknown, upToRevision: number): Promise<number | undefined> {
    return await this.#attempt("overwriting", key, async () => {
      const created = await this.#trySwap(key, value, { lastSeq: 0 });
      if (created.revision !== undefined) return created.revision;
      // Of an entry that cannot be read only this answer names the revision.
      const { present } = created;
      if (present === undefined || present > upToRevision) return undefined;
      return (await this.#trySwap(key, value, { lastSeq: present })).revision;
    });
  }

  async keys(prefix: string): Promise<string[]> {
    return await this.#attempt("listing", prefix, () => this.#listed(`${prefix}>`));
  }

  async changes(
    prefix: string,
    afterRevision: number,
    onEntry: (key: string, entry: KvEntry) => void,
  ): Promise<number> {
    const { client, manager, timeoutMs } = this.#deps;
    return await this.#attempt("following", prefix, async () => {
      const [stream, root] = [bucketStream(this.#bucket), this.#subject("")];
      const filter = `${root}${prefix}>`;
      // Asked of the stream, whose leader answers; a consumer may run on a replica that lags.
      const { state } = await manager.streams.info(stream);
      if (state.last_seq <= afterRevision) return afterRevision;
      // This searches all subjects, so it runs only if anything was stored at all.
      const last = await manager.streams.getMessage(stream, { last_by_subj: filter });
      const reported = new Set<string>();
      if (last === null || last.seq <= afterRevision) {
        if (afterRevision === 0) await this.#requireAll(prefix, reported);
        return state.last_seq;
      }
      let revision = state.last_seq;
      const changes = readStream({
        ...{ manager, client, stream, timeoutMs, toSeq: last.seq },
        select: {
          filter_subject: filter,
          deliver_policy: DeliverPolicy.StartSequence,
          opt_start_seq: afterRevision + 1,
        },
        action: this.#describe("following", prefix),
        details: { bucket: this.#bucket },
      });
      for await (const batch of changes) {
        for (const message of batch) {
          const key = message.subject.slice(root.length);
          reported.add(key);
          onEntry(key, this.#entry(key, message.string(), message.seq));
          revision = Math.max(revision, message.seq);
        }
      }
      // The broker passes over entries that it cannot read. They are looked for where all entries are reported.
      if (afterRevision === 0) await this.#requireAll(prefix, reported);
      return revision;
    });
  }

  /** Reads the entries that are listed and were not reported. @throws JOB_DAMAGED for one that cannot be read. */
  async #requireAll(prefix: string, reported: ReadonlySet<string>): Promise<void> {
    for (const key of await this.#listed(`${prefix}>`)) {
      if (!reported.has(key)) await this.read(key);
    }
  }

  /** Lists the keys that match a pattern, as the stream's index has them. */
  async #listed(pattern: string): Promise<string[]> {
    const root = this.#subject("");
    // Asked of the stream, whose leader answers; a consumer may run on a replica that lags.
    const info = await this.#deps.manager.streams.info(bucketStream(this.#bucket), {
      subjects_filter: `${root}${pattern}`,
    });
    return Object.keys(info.state.subjects ?? {}).map((subject) => subject.slice(root.length));
  }

  #entry(key: string, text: string, revision: number): KvEntry {
    return { value: decodeEntry(key, text, this.#bucket), revision };
  }

  #damaged(key: string, problem: string): PserverError {
    return entryDamaged(key, problem, { bucket: this.#bucket });
  }

  /** Writes an entry on these conditions; undefined if they are not true. */
  async #swap(
    action: string,
    key: string,
    value: unknown,
    condition: StoreCondition,
  ): Promise<number | undefined> {
    return await this.#attempt(action, key, async () => {
      try {
        return (await this.#trySwap(key, value, condition)).revision;
      } catch (error) {
        throw fromStoreError(error, this.#describe(action, key), { bucket: this.#bucket, key });
      }
    });
  }

  /** As {@link #swap}; if it is refused, returns the revision that the entry has, if the broker says it. */
  async #trySwap(
    key: string,
    value: unknown,
    condition: StoreCondition,
  ): Promise<{ readonly revision?: number; readonly present?: number }> {
    const { connection, timeoutMs } = this.#deps;
    try {
      this.#publisher ??= StreamPublisher.open(connection);
      const text = encodeEntry(key, value);
      return {
        revision: await this.#publisher.swap(this.#subject(key), text, condition, timeoutMs),
      };
    } catch (error) {
      if (!isWrongSequence(error)) throw error;
      const present = PRESENT_REVISION.exec(error instanceof Error ? error.message : "")?.[1];
      return present === undefined ? {} : { present: Number(present) };
    }
  }

  async #attempt<Result>(action: string, key: string, run: () => Promise<Result>): Promise<Result> {
    return await brokerCall(this.#describe(action, key), { bucket: this.#bucket, key }, run);
  }

  #subject(key: string): string {
    return `$KV.${this.#bucket}.${key}`;
  }

  #describe(action: string, key: string): string {
    return `${action} ${key} in the bucket ${this.#bucket}`;
  }
}

/** The broker's text for a refused compare-and-swap. */
const PRESENT_REVISION = /wrong last sequence: (\d+)/;

/** What is wrong with an entry that the broker lists and does not give. */
export const UNREADABLE = "the broker cannot read it";

/** Tries to read an entry that the broker lists. */
const READS_MAX = 3;

/** What an entry ends with: its checksum, of ten digits at most. */
const CHECKSUM_AT_END = /,"crc":(\d{1,10})\}$/;

/**
 * Writes an entry as text: JSON, whose last field is a checksum of the key and all other fields. The value must be an
 * object with at least one field.
 */
export function encodeEntry(key: string, value: unknown): string {
  const body = JSON.stringify(value).slice(0, -1);
  return `${body},"crc":${crcOf(key, body)}}`;
}

/**
 * Reads the value of an entry from its text.
 * @throws JOB_DAMAGED if it was written under another key, or is not as it was written.
 */
export function decodeEntry(key: string, text: string, bucket: string): unknown {
  const found = CHECKSUM_AT_END.exec(text);
  const body = text.slice(0, found?.index);
  const [expected, received] = [found === null ? undefined : Number(found[1]), crcOf(key, body)];
  if (expected === received) return JSON.parse(`${body}}`) as unknown;
  const problem =
    expected === undefined
      ? `expected a checksum at its end; received ${JSON.stringify(text.slice(-40))}`
      : `expected checksum ${expected}; its key and fields give ${received}`;
  throw entryDamaged(key, problem, { bucket, expected, received });
}

function crcOf(key: string, body: string): number {
  return checksum(Buffer.from(`${key} ${body}`));
}

/** Makes the error for an entry of a job's bucket that is damaged, lost or older than what was done under it. */
export function entryDamaged(
  key: string,
  problem: string,
  details: ErrorDetails = {},
  options?: ErrorOptions,
): PserverError {
  const text = `entry ${key} of the job's bucket is damaged: ${problem}; ${ENTRY_ADVICE}`;
  return new PserverError("JOB_DAMAGED", text, { ...details, key, problem }, options);
}

/** What a person can do about a damaged entry. */
export const ENTRY_ADVICE =
  '"pserver recover" shows what the shards know, and can write the entries again';

/** Version of the entries that this program writes. */
export const ENTRY_FORMAT = 1;

/**
 * Reads an entry of this format with `parse`.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED if `parse` throws.
 */
export function readEntry<Result>(
  value: unknown,
  key: string,
  parse: (fields: Fields) => Result,
): Result {
  let format: unknown;
  try {
    const fields = asMap(value, "record");
    format = fields["format"];
    if (format === ENTRY_FORMAT) return parse(fields);
  } catch (cause) {
    throw entryDamaged(key, ensureError(cause).message, {}, { cause });
  }
  throw new PserverError(
    "BAD_VERSION",
    `record ${key}: expected format ${ENTRY_FORMAT}; received ${String(format)}`,
    { key, expected: ENTRY_FORMAT, received: format },
  );
}
