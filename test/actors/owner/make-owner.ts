import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { HostMemory } from "../../../src/actors/host/host-memory.ts";
import type { Journal } from "../../../src/actors/journal/journal.ts";
import { Credit } from "../../../src/actors/journal/journal-reader.ts";
import { SnapshotBudget } from "../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { WatermarkKeeper } from "../../../src/actors/journal/watermark-keeper.ts";
import { FairServer, RefusalBudget } from "../../../src/actors/owner/fair-server.ts";
import { Coalescer } from "../../../src/actors/owner/fold-loop.ts";
import { OwnerCounters } from "../../../src/actors/owner/owner-counters.ts";
import { Responder } from "../../../src/actors/owner/responder.ts";
import type {
  OwnerListener,
  OwnerSettings,
  ShardContext,
  WorkerContext,
} from "../../../src/actors/owner/serving-shard.ts";
import { ShardOwner } from "../../../src/actors/owner/shard-owner.ts";
import { FailedBlocks } from "../../../src/actors/owner/subscriptions.ts";
import { BufferPool } from "../../../src/transport/buffers.ts";
import { hashedPlaces } from "../../support/hashed-places.ts";
import type { JournalLine } from "../../support/journal-line.ts";
import type { MemoryBucket } from "../../support/memory-bucket.ts";
import type { MemorySnapshots } from "../../support/memory-snapshots.ts";
import { type JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

export const SHARDS = 16;

/** What an owner works on without a broker. */
export interface OwnerParts {
  /** Delivers the journal. */
  readonly line: JournalLine;
  /** Has written the journal. */
  readonly writer: JournalWriter;
  /** Has the watermark. */
  readonly records: MemoryBucket;
  readonly snapshots: MemorySnapshots;
  /** Records that the journal has lost at its end. */
  readonly lost: () => number;
  /** Sequences without a record at the end of the journal, which the next record follows. */
  readonly skipped?: () => readonly number[];
  /** How many brokers keep the journal; one by default. */
  readonly replicas?: number;
  /** The last generation whose stream was deleted. */
  readonly deleted?: () => number;
  /** By subject, who receives requests. */
  readonly handlers: Map<string, (error: null, message: Msg) => void>;
  readonly answered: Uint8Array[];
}

/** What an owner may get in place of what {@link makeOwner} gives it. */
export type OwnerChanges = Partial<
  OwnerSettings &
    Pick<WorkerContext, "memory" | "snapshotBudget"> &
    Pick<ShardContext, "tenure" | "isLeaseRenewed">
> & { readonly listener?: Partial<OwnerListener> };

/** An owner of the shard, with some parts changed. */
export function makeOwner(parts: OwnerParts, changes: OwnerChanges = {}): ShardOwner {
  const { line, records, snapshots, handlers, answered } = parts;
  const dataConnection = {
    subscribe: (subject: string, { callback }: { callback: (e: null, m: Msg) => void }) => {
      handlers.set(subject, callback);
      return { unsubscribe: () => handlers.delete(subject) };
    },
    publish: (_subject: string, bytes: Uint8Array) => answered.push(bytes),
    isClosed: () => false,
    flush: () => Promise.resolve(),
  } as unknown as NatsConnection;
  const pool = new BufferPool();
  const { memory, snapshotBudget, listener, ...others } = changes;
  const { tenure = () => 1n, isLeaseRenewed = () => true, ...settings } = others;
  return new ShardOwner({
    shard: SHARD,
    journal: makeJournal(parts),
    store: snapshots.store,
    watermarks: new WatermarkKeeper(records, SHARD),
    tape: undefined,
    tapeBytesMax: 1024 ** 3,
    credit: new Credit(1_000_000, 1_000),
    ...{ tenure, isLeaseRenewed },
    listener: {
      serving: () => undefined,
      trouble: () => undefined,
      fellBack: () => undefined,
      recovered: () => undefined,
      ...listener,
    },
    worker: {
      host: "h",
      subjects: SUBJECTS,
      settings: {
        journalStorage: "file",
        leaseMs: 60_000,
        snapshotBytes: 1_000_000,
        retainBytes: 1_000_000,
        olderBytesMax: 1_000_000,
        partBytesMax: 100_000,
        ...settings,
      },
      journalConnection: line.connection,
      manager: line.manager,
      inboxPrefix: "_INBOX_test.=host.h",
      dataConnection,
      server: new FairServer(new RefusalBudget()),
      responder: new Responder(dataConnection, pool),
      failedBlocks: new FailedBlocks(dataConnection, SUBJECTS, hashedPlaces(SHARDS)),
      coalescer: new Coalescer(),
      counters: new OwnerCounters(false),
      archivers: { copied: () => Promise.resolve([]) },
      snapshotBudget: snapshotBudget ?? new SnapshotBudget(pool),
      memory: memory ?? HostMemory.open({ shards: SHARDS }),
    },
  });
}

/** The journal of a writer; it exists once a snapshot does. */
function makeJournal(parts: OwnerParts): Journal {
  const { writer, snapshots, lost, skipped = () => [], deleted = () => 0, replicas = 1 } = parts;
  const lastSeq = (): number => (writer.records.at(-1)?.seq ?? 0) - lost();
  const info = (): object => {
    const missing = skipped();
    const range = { firstSeq: 1, lastSeq: Math.max(lastSeq(), ...missing), missing };
    return { created: "now", ...range, lost: undefined, bytes: 1, bytesMax: 0 };
  };
  let isMade = snapshots.messages.size > 0;
  return {
    ...{ shard: SHARD, replicas, isReplicated: replicas > 1 },
    stream: () => "PS_test_3",
    append: () => Promise.resolve({ generation: 1, seq: lastSeq() }),
    lastSeq: () => Promise.resolve(isMade ? lastSeq() : undefined),
    newestGeneration: () => Promise.resolve(isMade ? 1 : 0),
    info: (generation: number) =>
      Promise.resolve(isMade && generation > deleted() ? info() : undefined),
    rules: 1,
    open: (_generation: number, first: number | undefined) => {
      if (first !== undefined) writer.host({ verb: "rules", rules: first });
      isMade = true;
      return Promise.resolve(info());
    },
    record: (_generation: number, seq: number) =>
      Promise.resolve(seq > lastSeq() ? undefined : writer.records.find((of) => of.seq === seq)),
    beginsWithRules: () => Promise.resolve(true),
    setAside: () => Promise.resolve(new Map()),
    purgeBelow: () => Promise.resolve(),
  } as unknown as Journal;
}
