import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { AckPolicy, DeliverPolicy, type JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection, nanos, nuid } from "@nats-io/transport-node";
import { readable } from "../actors/fold/journal-record.ts";
import type { StoredSettings } from "../actors/job/job-settings.ts";
import { openStoredJob, type StoredJob } from "../actors/job/open-job.ts";
import { OwnersClient } from "../actors/job/owners-client.ts";
import type { Journal, JournalInfo } from "../actors/journal/journal.ts";
import { journalDamaged, lastRecordSeq } from "../actors/journal/journal-check.ts";
import { Credit, type DeliveredRecord, JournalReader } from "../actors/journal/journal-reader.ts";
import type { KvBucket } from "../actors/journal/kv-bucket.ts";
import type { PieceRef } from "../actors/journal/manifest.ts";
import { MismatchedRecords } from "../actors/journal/mismatched-records.ts";
import { SnapshotReader } from "../actors/journal/snapshot-store.ts";
import {
  brokerCall,
  readStream,
  type StreamRead,
  streamExists,
} from "../actors/journal/streams.ts";
import { readTapeStorage } from "../actors/journal/tape/tape-store.ts";
import type { Watermark } from "../actors/journal/watermark.ts";
import { WatermarkKeeper } from "../actors/journal/watermark-keeper.ts";
import { inspectEntries } from "../actors/recovery/inspect-entries.ts";
import {
  comparePositions,
  ensureError,
  type Fields,
  isSealed,
  JobSubjects,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  type ShardKnowledge,
  type Synchronization,
} from "../protocol/index.ts";
import { showPosition } from "../protocol/messages/position.ts";
import type { EntryProblem } from "../protocol/messages/shard-knowledge.ts";
import { orNoJetStream } from "../transport/broker-error.ts";
import { payloadBytesMaxOf } from "../transport/bulk-transport.ts";
import { type ConnectionSettings, openConnection } from "../transport/connection.ts";
import { openJetStream } from "../transport/jetstream.ts";
import {
  checkShard,
  type HistorySource,
  historyLost,
  type JournalSpan,
  type KeptSnapshot,
  type ShardHistory,
  type StoredTapeMessage,
  type TapeStart,
  type TimedRecord,
} from "./source.ts";

/** Bytes of records that are requested before they are used. */
const READ_AHEAD_BYTES = 16 * 1024 ** 2;

/** Longest wait for the next record; then reading gives up. */
const SILENCE_MS = 60_000;

/** Silence after which the broker is asked whether it can give the next record at all. */
const STALL_MS = 5_000;

/** Dependencies of {@link readRecords}. */
interface ReadRecordsDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly isReplicated: boolean;
  readonly shard: number;
  readonly stream: string;
  /** Makes the error for a journal that has record `found`, or nothing, where it should have `expected`. */
  readonly missing: (expected: number, found: number | undefined) => Promise<PserverError>;
  /** Returns the error for record `expected` if the broker counts it and cannot give it. */
  readonly unreadable: (expected: number) => Promise<PserverError | undefined>;
}

/**
 * Has a reader read those records of a replicated journal from another broker's copy that do not match their
 * checksum, until another broker gives the same bytes.
 */
class DoubtfulRecords {
  readonly #reader: JournalReader;
  readonly #mismatched: MismatchedRecords = new MismatchedRecords();

  constructor(reader: JournalReader) {
    this.#reader = reader;
  }

  /** Whether a record is to be read again. If so, the reader begins anew, and avoids this copy. */
  rereads(record: DeliveredRecord): boolean {
    const { broker, seq, payload } = record;
    if (broker === undefined || isSealed(payload)) return false;
    const other = this.#mismatched.brokerOf(seq);
    // If no two copies are alike, the record is given as it is: it fails whatever it is needed for.
    if (this.#mismatched.isConfirmedBy(record) || !this.#mismatched.remember([record])) {
      if (other !== undefined) this.#reader.allow(other);
      return false;
    }
    this.#reader.avoid(broker);
    void this.#reader.reset();
    return true;
  }
}

/**
 * Reads the records of a journal stream after `afterSeq` up to `toSeq`, in order, in batches of those that have
 * arrived. The caller may keep them. Of a replicated journal, a record that one copy has damaged is read from another.
 * @throws the error of `missing` or `unreadable`; TIMEOUT after a minute without a record; the reason of `signal`.
 */
async function* readRecords(
  { shard, stream, missing, unreadable, ...deps }: ReadRecordsDeps,
  afterSeq: number,
  toSeq: number,
  signal: AbortSignal,
): AsyncGenerator<readonly TimedRecord[], void, undefined> {
  if (afterSeq >= toSeq) return;
  signal.throwIfAborted();
  const credit = new Credit(READ_AHEAD_BYTES, payloadBytesMaxOf(deps.connection));
  const reader = new JournalReader({ ...deps, credit });
  let arrived: TimedRecord[] = [];
  let [receivedSeq, takenSeq] = [afterSeq, afterSeq];
  let failure: (() => PserverError | Promise<PserverError>) | undefined;
  let wake = (): void => undefined;
  const doubtful = new DoubtfulRecords(reader);
  const fail = (make: () => PserverError | Promise<PserverError>): void => {
    failure ??= make;
    reader.stop();
    wake();
  };
  const onAbort = (): void => {
    arrived = [];
    fail(() => ensureError(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  void reader.start({
    locate: () => Promise.resolve({ stream, startSeq: receivedSeq + 1 }),
    onRecord: (record) => {
      if (failure !== undefined) return;
      const expected = receivedSeq + 1;
      if (record.seq !== expected) {
        fail(() => missing(expected, record.seq));
        return;
      }
      if (doubtful.rereads(record)) return;
      receivedSeq = record.seq;
      arrived.push(record);
      wake();
    },
    onFailure: (error) =>
      fail(() =>
        unreadable(receivedSeq + 1).then(
          (damage) => damage ?? error,
          () => error,
        ),
      ),
  });
  let heardAtMs = performance.now();
  try {
    while (takenSeq < toSeq) {
      if (arrived.length === 0 && failure === undefined) {
        let stall: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
          wake = resolve;
          stall = setTimeout(resolve, STALL_MS);
        });
        clearTimeout(stall);
      }
      // When a PING is answered, all has come that was sent before, however slow the link is.
      if (arrived.length === 0 && failure === undefined) {
        await deps.connection.flush().catch(() => undefined);
      }
      if (arrived.length === 0 && failure === undefined) {
        const damage = await unreadable(receivedSeq + 1);
        // It may have come while the broker was asked.
        if (arrived.length > 0 || failure !== undefined) continue;
        if (damage !== undefined) throw damage;
        if (performance.now() - heardAtMs >= SILENCE_MS) throw silence(shard, receivedSeq + 1);
        continue;
      }
      heardAtMs = performance.now();
      // Records that came before a failure are given first.
      if (arrived.length === 0 && failure !== undefined) throw await failure();
      const batch = arrived.splice(0);
      const wanted = batch.filter(({ seq }) => seq <= toSeq);
      takenSeq = batch.at(-1)?.seq ?? takenSeq;
      if (wanted.length > 0) yield wanted;
      reader.taken(batch.length);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    reader.stop();
  }
}

function silence(shard: number, seq: number): PserverError {
  const text = `shard ${shard}: record ${seq} was not read within ${SILENCE_MS} ms`;
  return new PserverError("TIMEOUT", text, { shard, seq });
}

/** Messages of a tape that are requested at one time; each has up to about 64 KiB. */
const TAPE_MESSAGES = 64;

/** How long the broker may deliver no message of a tape that it has. */
const TAPE_MS = 30_000;

/** Selects the messages of a tape that are read. */
function selectFrom(start: TapeStart): StreamRead["select"] {
  if (start.kind === "message") {
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start.seq };
  }
  if (start.timeMs <= 0) return { deliver_policy: DeliverPolicy.All };
  const time = new Date(Math.floor(start.timeMs)).toISOString();
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: time };
}

/** How long the broker keeps the consumer if it cannot be deleted. */
const CONSUMER_MS = 5_000;

/**
 * Returns the sequence of the last message of a stream that was stored at or before `timeMs`; one less than the first
 * sequence if all were stored later. The broker searches; no message is read.
 * @throws TIMEOUT, DENIED, JETSTREAM_UNAVAILABLE and the like.
 */
async function seqAt(manager: JetStreamManager, stream: string, timeMs: number): Promise<number> {
  return await brokerCall(`looking for a time in the stream ${stream}`, { stream }, async () => {
    const { name, delivered } = await manager.consumers.add(stream, {
      // A named consumer needs no other permission than that of a journal's reader.
      name: `time-${nuid.next()}`,
      deliver_policy: DeliverPolicy.StartTime,
      opt_start_time: timeText(timeMs),
      headers_only: true,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(CONSUMER_MS),
      mem_storage: true,
      num_replicas: 1,
    });
    // If it cannot be deleted, for lack of a connection or a permission, it expires soon.
    await manager.consumers.delete(stream, name).catch(() => undefined);
    return delivered.stream_seq;
  });
}

/** Returns the first nanosecond after `timeMs`, as the broker reads times. */
function timeText(timeMs: number): string {
  const wholeMs = Math.floor(timeMs);
  const nanoseconds = Math.round((timeMs - wholeMs) * 1e6) + 1;
  const seconds = new Date(Math.floor(wholeMs / 1000) * 1000).toISOString().slice(0, -5);
  const fraction = (wholeMs - Math.floor(wholeMs / 1000) * 1000) * 1e6 + nanoseconds;
  return `${seconds}.${String(fraction).padStart(9, "0")}Z`;
}

/** Dependencies of {@link BrokerShard}. */
export interface BrokerShardDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly inboxPrefix: string;
  readonly journal: Journal;
  readonly snapshots: SnapshotReader;
  /** The job's bucket. */
  readonly bucket: KvBucket;
}

/** What the broker holds of one shard: its journal, perhaps an abandoned one, and its snapshots. */
export class BrokerShard implements ShardHistory {
  readonly shard: number;
  readonly #deps: BrokerShardDeps;

  constructor(deps: BrokerShardDeps) {
    this.shard = deps.journal.shard;
    this.#deps = deps;
  }

  async spans(): Promise<JournalSpan[]> {
    const journals = await this.#journals();
    return journals.flatMap(({ generation, info }) => spansOf(generation, info));
  }

  async snapshots(): Promise<KeptSnapshot[]> {
    const found = await this.#deps.snapshots.manifestEntries();
    const kept = found.flatMap(({ seq, timeMs, manifest }) =>
      manifest === undefined ? [] : [{ seq, timeMs, manifest }],
    );
    return kept.sort((a, b) => comparePositions(a.manifest, b.manifest));
  }

  piece(ref: PieceRef): Promise<Uint8Array> {
    return this.#deps.snapshots.read(ref);
  }

  read(
    after: Position,
    toSeq: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TimedRecord[], void, undefined> {
    const { generation, seq } = after;
    const { journal } = this.#deps;
    const stream = journal.stream(generation);
    const missing = (expected: number, found: number | undefined): Promise<PserverError> =>
      this.#missing(generation, expected, found);
    const unreadable = async (expected: number): Promise<PserverError | undefined> =>
      (await this.#isUnreadable(generation, expected)) ? missing(expected, undefined) : undefined;
    const { isReplicated } = journal;
    const deps = { ...this.#deps, isReplicated, shard: this.shard, stream, missing, unreadable };
    return readRecords(deps, seq, toSeq, signal);
  }

  async watermark(): Promise<Watermark | undefined> {
    try {
      return await new WatermarkKeeper(this.#deps.bucket, this.shard).read();
    } catch (error) {
      // That it is damaged is found where the entries are compared; nothing else depends on it here.
      if (ensureError(error).code !== "JOB_DAMAGED") throw error;
      return undefined;
    }
  }

  async *readTape(
    start: TapeStart,
    signal: AbortSignal,
  ): AsyncGenerator<StoredTapeMessage, void, undefined> {
    const { connection, manager, subjects } = this.#deps;
    const [{ shard }, stream] = [this, subjects.tapeStream()];
    const [action, details] = [`reading the tape of shard ${shard}`, { shard }];
    if (!(await brokerCall(action, details, () => streamExists(manager, stream)))) return;
    const batches = readStream({
      ...{ manager, client: openJetStream(connection), stream, action, details },
      ...{ batchMessages: TAPE_MESSAGES, timeoutMs: TAPE_MS },
      select: { filter_subject: subjects.tape(shard), ...selectFrom(start) },
    });
    for await (const batch of batches) {
      signal.throwIfAborted();
      for (const { seq, data, info } of batch) {
        yield { seq, timeMs: info.timestampNanos / 1e6, data };
      }
    }
  }

  async isTapeTrimmed(): Promise<boolean> {
    const { manager, subjects } = this.#deps;
    const stream = subjects.tapeStream();
    const { shard } = this;
    const exists = await brokerCall(`looking for the tape of shard ${shard}`, { shard }, () =>
      streamExists(manager, stream),
    );
    return exists && (await readTapeStorage(manager, subjects)).trimmedToMs !== undefined;
  }

  async lastUpTo({ generation, firstSeq, lastSeq }: JournalSpan, timeMs: number): Promise<number> {
    if (lastSeq < firstSeq) return lastSeq;
    const seq = await seqAt(this.#deps.manager, this.#deps.journal.stream(generation), timeMs);
    return Math.min(Math.max(seq, firstSeq - 1), lastSeq);
  }

  /** Lists the journals that the broker holds, by generation, ascending. */
  async #journals(): Promise<{ generation: number; info: JournalInfo }[]> {
    const { journal } = this.#deps;
    const journals: { generation: number; info: JournalInfo }[] = [];
    for (const generation of await this.#generations()) {
      const info = await journal.info(generation);
      if (info !== undefined) journals.push({ generation, info });
    }
    return journals;
  }

  async #generations(): Promise<number[]> {
    const { manager, subjects } = this.#deps;
    const { shard } = this;
    return await brokerCall(`looking for journals of shard ${shard}`, { shard }, async () => {
      const found: number[] = [];
      for await (const name of manager.streams.names()) {
        const journal = readable(() => subjects.parseJournalStream(name));
        if (journal?.shard === shard) found.push(journal.generation);
      }
      return found.sort((a, b) => a - b);
    });
  }

  /** Makes the error for a record that is missing where it should be read: it was trimmed since, or lost. */
  async #missing(
    generation: number,
    expected: number,
    found: number | undefined,
  ): Promise<PserverError> {
    const { shard } = this;
    const info = await this.#deps.journal.info(generation);
    if (info !== undefined && info.firstSeq <= expected) {
      return journalDamaged(shard, expected, found);
    }
    const wanted = `record ${showPosition(shard, { generation, seq: expected })}`;
    return historyLost(shard, wanted, info && { generation, seq: info.firstSeq });
  }

  /** Whether the broker counts a record that it cannot give, or has removed it or its journal since. */
  async #isUnreadable(generation: number, seq: number): Promise<boolean> {
    const { journal } = this.#deps;
    // Asked first: the record may be stored meanwhile.
    const info = await journal.info(generation);
    if (info === undefined) return true;
    return info.lastSeq >= seq && (await journal.record(generation, seq)) === undefined;
  }
}

/** Returns the spans of a journal, which is divided where records are missing. */
function spansOf(generation: number, info: JournalInfo): JournalSpan[] {
  const spans: JournalSpan[] = [];
  let firstSeq = Math.max(1, info.firstSeq);
  const lastSeq = lastRecordSeq(info);
  for (const seq of info.missing) {
    if (seq < firstSeq || seq > lastSeq) continue;
    if (seq > firstSeq) spans.push({ generation, firstSeq, lastSeq: seq - 1 });
    firstSeq = seq + 1;
  }
  spans.push({ generation, firstSeq, lastSeq });
  return spans;
}

/** Grace time of a request to the owner of a shard. */
const OWNER_MS = 5_000;

/** The history that the broker still holds: journals, abandoned ones too, and snapshots. */
export class BrokerHistory implements HistorySource {
  readonly name = "broker";
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string;
  readonly #job: StoredJob;
  readonly #owners: OwnersClient;

  private constructor(connection: NatsConnection, host: string, job: StoredJob) {
    this.#connection = connection;
    this.#inboxPrefix = job.subjects.hostInbox(host);
    this.#job = job;
    this.#owners = new OwnersClient({ ...job, connection, host });
  }

  /**
   * Connects as a host does, without joining the job; works without any host. The caller closes it. The timeout of the
   * connection also holds for each answer of the broker. `role`: purpose of the connection, as part of its name.
   * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds no such
   * job.
   */
  static async open(
    reach: ConnectionSettings,
    job: string,
    role: "history" | "archive" = "history",
  ): Promise<BrokerHistory> {
    const host = `${role}-${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const inboxPrefix = new JobSubjects(job).hostInbox(host);
    const connection = await openConnection(reach, { name: `pserver ${job} ${role}`, inboxPrefix });
    try {
      return await BrokerHistory.over(connection, job, host, reach.timeoutMs);
    } catch (error) {
      await connection.close();
      throw orNoJetStream(ensureError(error), connection);
    }
  }

  /**
   * Reads over an open connection, which is closed with the history. `host`: the id in the inboxes at which answers may
   * come. `timeoutMs`: how long one may take, 5 s by default.
   * @throws as {@link open}.
   */
  static async over(
    connection: NatsConnection,
    job: string,
    host: string,
    timeoutMs?: number,
  ): Promise<BrokerHistory> {
    return new BrokerHistory(connection, host, await openStoredJob(connection, job, timeoutMs));
  }

  get job(): string {
    return this.#job.subjects.job;
  }

  get shards(): number {
    return this.#job.settings.shards;
  }

  get synchronization(): Synchronization {
    return this.#job.settings.synchronization;
  }

  get settings(): StoredSettings {
    return this.#job.settings;
  }

  /** The job's bucket. */
  get bucket(): KvBucket {
    return this.#job.bucket;
  }

  shard(shard: number): BrokerShard {
    checkShard(this, shard);
    const { manager, subjects, bucket, journalOf } = this.#job;
    return new BrokerShard({
      ...{
        connection: this.#connection,
        inboxPrefix: this.#inboxPrefix,
        manager,
        subjects,
        bucket,
      },
      journal: journalOf(shard),
      snapshots: new SnapshotReader({ manager, subjects, shard }),
    });
  }

  async compareEntries(
    known: ReadonlyMap<number, ShardKnowledge>,
  ): Promise<readonly EntryProblem[]> {
    const ask = async (shard: number): Promise<ShardKnowledge | undefined> => known.get(shard);
    return (await inspectEntries(this.bucket, [...known.keys()], ask)).problems;
  }

  askOwner(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message> {
    return this.#owners.ask(shard, verb, fields, OWNER_MS);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
