import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { readable } from "../../actors/fold/read-record.ts";
import { brokerCall } from "../../actors/jetstream/broker-call.ts";
import type { KvBucket } from "../../actors/jetstream/kv-bucket.ts";
import type { Journal, JournalInfo } from "../../actors/journal/journal.ts";
import type { HeadMark } from "../../actors/owner/head-mark.ts";
import { journalDamaged, lastRecordSeq } from "../../actors/owner/journal-gap.ts";
import { MarkKeeper } from "../../actors/owner/mark-keeper.ts";
import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import type { SnapshotReader } from "../../actors/snapshot/snapshot-reader.ts";
import {
  comparePositions,
  type JobSubjects,
  type Position,
  type PserverError,
} from "../../protocol/index.ts";
import { historyLost, showPosition } from "../history-lost.ts";
import type {
  JournalSpan,
  KeptSnapshot,
  ShardHistory,
  StoredTapeMessage,
  TapeStart,
  TimedRecord,
} from "../source.ts";
import { readRecords } from "./read-records.ts";
import { readTapeMessages } from "./read-tape.ts";
import { seqAt } from "./time-search.ts";

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
