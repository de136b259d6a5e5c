import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { type NatsConnection, nanos, nuid } from "@nats-io/transport-node";
import { readable } from "../actors/fold/journal-record.ts";
import { OwnersClient } from "../actors/host/owners-client.ts";
import { openStoredJob, type StoredJob } from "../actors/job/open-job.ts";
import type { HeadMark } from "../actors/journal/head-mark.ts";
import type { Journal, JournalInfo } from "../actors/journal/journal.ts";
import { journalDamaged, lastRecordSeq } from "../actors/journal/journal-check.ts";
import { Credit, JournalReader } from "../actors/journal/journal-reader.ts";
import type { KvBucket } from "../actors/journal/kv-bucket.ts";
import type { PieceRef } from "../actors/journal/manifest.ts";
import { MarkKeeper } from "../actors/journal/mark-keeper.ts";
import { SnapshotReader } from "../actors/journal/snapshot-store.ts";
import { brokerCall, storageQueries, streamExists } from "../actors/journal/streams.ts";
import {
  comparePositions,
  ensureError,
  type Fields,
  JobSubjects,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  type Synchronization,
} from "../protocol/index.ts";
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
  showPosition,
  type TapeStart,
  type TimedRecord,
} from "./source.ts";

/** Bytes of records that are requested ahead of their use. */
const AHEAD_BYTES = 16 * 1024 ** 2;

/** Time without a record after which reading gives up. */
const SILENCE_MS = 60_000;

/** Dependencies of {@link readRecords}. */
interface ReadRecordsDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly shard: number;
  readonly stream: string;
  /** The error for a journal that delivers record `found` where it should deliver `expected`. */
  readonly missing: (expected: number, found: number) => Promise<PserverError>;
}

/**
 * Reads the records of a journal stream after `afterSeq` up to `toSeq`, in order, in batches of those that
 * have arrived. The caller may keep them.
 * @throws what `missing` makes; TIMEOUT after a minute without a record; the reason of `signal`.
 */
async function* readRecords(
  deps: ReadRecordsDeps,
  afterSeq: number,
  toSeq: number,
  signal: AbortSignal,
): AsyncGenerator<readonly TimedRecord[], void, undefined> {
  if (afterSeq >= toSeq) return;
  const arrivals = new Arrivals(deps, afterSeq);
  const abort = (): void => arrivals.abort(ensureError(signal.reason));
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  arrivals.start();
  try {
    for (let last = afterSeq; last < toSeq; ) {
      const batch = await arrivals.next();
      const wanted = batch.filter(({ seq }) => seq <= toSeq);
      last = batch.at(-1)?.seq ?? last;
      if (wanted.length > 0) yield wanted;
      arrivals.taken(batch.length);
    }
  } finally {
    signal.removeEventListener("abort", abort);
    arrivals.stop();
  }
}

/** The records that have arrived and were not taken yet. */
class Arrivals {
  readonly #deps: ReadRecordsDeps;
  readonly #reader: JournalReader;
  #records: TimedRecord[] = [];
  #lastSeq: number;
  #failure: Promise<PserverError> | undefined;
  #wake: () => void = () => undefined;
  #isAborted = false;

  constructor(deps: ReadRecordsDeps, afterSeq: number) {
    const { connection } = deps;
    const credit = new Credit(AHEAD_BYTES, payloadBytesMaxOf(connection));
    this.#deps = deps;
    this.#lastSeq = afterSeq;
    this.#reader = new JournalReader({ ...deps, credit });
  }

  /** Takes what has arrived; waits for a record if there is none. @throws what ended the reading. */
  async next(): Promise<readonly TimedRecord[]> {
    if (this.#records.length === 0 && this.#failure === undefined) await this.#arrival();
    if (this.#records.length === 0 || this.#isAborted) throw await this.#failure;
    return this.#records.splice(0);
  }

  /** Lets as many more records arrive. */
  taken(records: number): void {
    this.#reader.taken(records);
  }

  stop(): void {
    this.#reader.stop();
  }

  /** Ends the reading at once, whatever has arrived. */
  abort(reason: PserverError): void {
    this.#isAborted = true;
    this.#fail(Promise.resolve(reason));
  }

  /** Begins to read; to be called once. */
  start(): void {
    const { stream } = this.#deps;
    void this.#reader.start({
      locate: () => Promise.resolve({ stream, startSeq: this.#lastSeq + 1 }),
      onRecord: (record) => this.#receive(record),
      onFailure: (error) => this.#fail(Promise.resolve(error)),
    });
  }

  #receive(record: TimedRecord): void {
    if (this.#failure !== undefined) return;
    const expected = this.#lastSeq + 1;
    if (record.seq !== expected) {
      this.#fail(this.#deps.missing(expected, record.seq));
      return;
    }
    this.#lastSeq = record.seq;
    this.#records.push(record);
    this.#wake();
  }

  #fail(failure: Promise<PserverError>): void {
    // It may be rejected before anybody asks for it.
    failure.catch(() => undefined);
    this.#failure = failure;
    this.#reader.stop();
    this.#wake();
  }

  /** Resolves with the next record or a failure. */
  async #arrival(): Promise<void> {
    const silent = setTimeout(() => this.#fail(Promise.resolve(this.#silence())), SILENCE_MS);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    clearTimeout(silent);
  }

  #silence(): PserverError {
    const { shard } = this.#deps;
    const seq = this.#lastSeq + 1;
    return new PserverError(
      "TIMEOUT",
      `shard ${shard}: record ${seq} was not read within ${SILENCE_MS} ms`,
      { shard, seq },
    );
  }
}

/** Messages that are asked for at one time; each has up to about 64 KiB. */
const FETCH_MESSAGES = 64;

/** How long to wait for a message that the stream has. */
const FETCH_MS = 5_000;

/** Dependencies of {@link readTapeMessages}. */
interface ReadTapeDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/**
 * The messages of a shard's tape in the broker from `start` on, oldest first; none if the job has no tape.
 * @throws TIMEOUT, DENIED and the like; the reason of the signal.
 */
async function* readTapeMessages(
  { connection, manager, subjects, shard }: ReadTapeDeps,
  start: TapeStart,
  signal: AbortSignal,
): AsyncGenerator<StoredTapeMessage, void, undefined> {
  const stream = subjects.tapeStream();
  const what = `reading the tape of shard ${shard}`;
  const info = await brokerCall(what, { shard }, async () => {
    if (!(await streamExists(manager, stream))) return undefined;
    return await manager.consumers.add(stream, {
      name: `tape-${nuid.next()}`,
      filter_subject: subjects.tape(shard),
      ...deliveryFrom(start),
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(60_000),
      mem_storage: true,
      num_replicas: 1,
    });
  });
  if (info === undefined) return;
  const consumer = openJetStream(connection).consumers.getConsumerFromInfo(info);
  try {
    let delivered = 0;
    for (let pending = info.num_pending; pending > 0; ) {
      signal.throwIfAborted();
      const wanted = Math.min(FETCH_MESSAGES, pending);
      const batch = await brokerCall(what, { shard }, () =>
        consumer.fetch({ max_messages: wanted, expires: FETCH_MS }),
      );
      // Taken at once: a batch that its reader lets wait would expire, and lose what had come.
      const messages: StoredTapeMessage[] = [];
      for await (const { info: delivery, data } of batch) {
        delivered += 1;
        if (delivery.deliverySequence !== delivered) throw lost(shard);
        pending = delivery.pending;
        const { streamSequence: seq, timestampNanos } = delivery;
        messages.push({ seq, timeMs: timestampNanos / 1e6, data });
      }
      if (messages.length === 0) throw silence(shard);
      yield* messages;
    }
  } finally {
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}

function deliveryFrom(start: TapeStart): Partial<ConsumerConfig> {
  if (start.kind === "message") {
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start.seq };
  }
  if (start.timeMs <= 0) return { deliver_policy: DeliverPolicy.All };
  const time = new Date(Math.floor(start.timeMs)).toISOString();
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: time };
}

function lost(shard: number): PserverError {
  return new PserverError("TIMEOUT", `tape of shard ${shard}: a message was lost on its way`, {
    shard,
  });
}

function silence(shard: number): PserverError {
  return new PserverError(
    "TIMEOUT",
    `tape of shard ${shard}: no message came within ${FETCH_MS} ms`,
    { shard },
  );
}

/** How long the broker keeps the consumer if it cannot be deleted. */
const CONSUMER_MS = 5_000;

/**
 * Sequence of the last message of a stream that was stored at or before `timeMs`; one less than the first
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

/** The first nanosecond after `timeMs`, as the broker reads times. */
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
  readonly records: KvBucket;
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
    const missing = (expected: number, found: number): Promise<PserverError> =>
      this.#missing(generation, expected, found);
    const deps = { ...this.#deps, shard: this.shard, stream, missing };
    return readRecords(deps, seq, toSeq, signal);
  }

  mark(): Promise<HeadMark | undefined> {
    return new MarkKeeper(this.#deps.records, this.shard).read();
  }

  readTape(
    start: TapeStart,
    signal: AbortSignal,
  ): AsyncGenerator<StoredTapeMessage, void, undefined> {
    const { connection, manager, subjects } = this.#deps;
    return readTapeMessages({ connection, manager, subjects, shard: this.shard }, start, signal);
  }

  async positionAt(timeMs: number): Promise<Position | undefined> {
    const snapshots = (await this.snapshots()).filter((snapshot) => snapshot.timeMs <= timeMs);
    for (const { generation, info } of (await this.#journals()).reverse()) {
      const stream = this.#deps.journal.stream(generation);
      const recordSeq = await seqAt(this.#deps.manager, stream, timeMs);
      const seqs = snapshots
        .filter(({ manifest }) => manifest.generation === generation)
        .map(({ manifest }) => manifest.seq);
      // A record that was trimmed was stored before the manifest that covers it. The first of an empty stream is 0.
      if (recordSeq >= Math.max(1, info.firstSeq))
        seqs.push(Math.min(recordSeq, lastRecordSeq(info)));
      if (seqs.length > 0) return { generation, seq: Math.max(...seqs) };
      // Which of the trimmed records were stored before is not known any more.
      if (info.firstSeq > 1) return undefined;
    }
    return undefined;
  }

  /** The journals that the broker holds, by generation, ascending. */
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

  /** The error for a record that a reading lacks: it was trimmed meanwhile, or lost. */
  async #missing(generation: number, expected: number, found: number): Promise<PserverError> {
    const { shard } = this;
    const info = await this.#deps.journal.info(generation);
    if (info === undefined || info.firstSeq <= expected) {
      return journalDamaged(shard, expected, found);
    }
    const wanted = `record ${showPosition(shard, { generation, seq: expected })}`;
    return historyLost(shard, wanted, { generation, seq: info.firstSeq });
  }
}

/** The spans of a journal: it is divided where records are missing. */
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

  constructor(connection: NatsConnection, host: string, job: StoredJob) {
    const { subjects, manager, journalOf } = job;
    const storage = storageQueries(manager, subjects);
    this.#connection = connection;
    this.#inboxPrefix = subjects.hostInbox(host);
    this.#job = job;
    this.#owners = new OwnersClient({ connection, subjects, host, storage, journalOf });
  }

  /**
   * Connects as a host does, without joining the job; works without any host. The caller closes it.
   * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds
   * no such job.
   */
  static async open(reach: ConnectionSettings, job: string): Promise<BrokerHistory> {
    const host = `history-${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const inboxPrefix = new JobSubjects(job).hostInbox(host);
    const connection = await openConnection(reach, { name: `pserver ${job} history`, inboxPrefix });
    try {
      return new BrokerHistory(connection, host, await openStoredJob(connection, job));
    } catch (error) {
      await connection.close();
      throw orNoJetStream(ensureError(error), connection);
    }
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

  shard(shard: number): BrokerShard {
    checkShard(this, shard);
    const { manager, subjects, records, journalOf } = this.#job;
    return new BrokerShard({
      ...{
        connection: this.#connection,
        inboxPrefix: this.#inboxPrefix,
        manager,
        subjects,
        records,
      },
      journal: journalOf(shard),
      snapshots: new SnapshotReader({ manager, subjects, shard }),
    });
  }

  askOwner(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message> {
    return this.#owners.ask(shard, verb, fields, OWNER_MS);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
