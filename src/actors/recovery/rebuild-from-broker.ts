import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  type ErrorCode,
  ensureError,
  type JobSubjects,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import { Shard } from "../fold/shard.ts";
import type { Journal } from "../journal/journal.ts";
import { journalDamaged } from "../journal/journal-check.ts";
import { Credit, JournalReader } from "../journal/journal-reader.ts";
import type { StoredManifest } from "../journal/manifest.ts";
import {
  blockKey,
  type LoadedShard,
  loadSnapshot,
  type SnapshotStore,
} from "../journal/snapshot-store.ts";
import { notedChecksums, type Watermark } from "../journal/watermark.ts";
import { Coalescer, FoldLoop } from "../owner/fold-loop.ts";
import type { FailedRecord, FoundRest, RecoveryChoice } from "./findings.ts";
import { type InitializedBlock, lackedBlocks } from "./inspect-snapshots.ts";

/** Time without a record after which folding gives up. */
const SILENCE_MS = 60_000;

/** Credit of the journal reader while records are folded. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/** The most records that can be put aside: more of them are no single mishap. */
const ASIDE_MAX = 8;

/** Dependencies of {@link rebuildFromBroker}. */
export interface RebuildDeps {
  readonly shard: number;
  readonly subjects: JobSubjects;
  readonly store: SnapshotStore;
  readonly journal: Journal;
  /** The last watermark of an owner of the shard. */
  readonly watermark: Watermark | undefined;
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly payloadBytesMax: number;
  readonly onStage?: (stage: "loaded") => void;
}

/** A state that the broker's snapshots and journal give. */
export type WantedState = Pick<RecoveryChoice, "from" | "generation" | "seq" | "without">;

/**
 * Rebuilds a state: loads its snapshot, if it has one, and folds the records of the journal up to the last one of the
 * state, unless the snapshot alone is wanted.
 * @throws SNAPSHOT_DAMAGED; JOURNAL_DAMAGED if a record is missing or has changed; UNKNOWN_RULES, TOO_LARGE,
 * FOLD_FAILED as the fold; TIMEOUT after a minute without a record.
 */
export async function rebuildFromBroker(
  deps: RebuildDeps,
  wanted: WantedState,
  base: StoredManifest | undefined,
): Promise<LoadedShard> {
  const { subjects, shard: number, onStage } = deps;
  const { shard, stored } =
    base === undefined
      ? { shard: Shard.create({ subjects, shard: number }), stored: new Map() }
      : await loadSnapshot(deps, base);
  onStage?.("loaded");
  // A new block may have the epoch and version of a removed one whose pieces are stored.
  const removed = new Set<string>();
  shard.hooks = { blockRemoved: ({ parameter, index }) => removed.add(blockKey(parameter, index)) };
  if (wanted.from !== "snapshot") await foldJournal(deps, shard, wanted);
  return { shard, stored: new Map([...stored].filter(([key]) => !removed.has(key))) };
}

/**
 * Finds out what a journal up to a record gives without `failed`, and without further records that this process
 * cannot fold. To find each of them, the journal is folded from the start again.
 * @throws TIMEOUT and the like if the broker does not answer.
 */
export async function findRest(
  deps: RebuildDeps & { readonly initialized: readonly InitializedBlock[] },
  failed: FailedRecord,
  { generation, seq }: Position,
  base: StoredManifest | undefined,
): Promise<FoundRest> {
  const aside = new Map([[failed.seq, failed]]);
  for (;;) {
    const without = [...aside.values()].sort((a, b) => a.seq - b.seq);
    try {
      const seqs = without.map((each) => each.seq);
      const wanted = { from: "rest", generation, seq, without: seqs } as const;
      const { shard } = await rebuildFromBroker(deps, wanted, base);
      return { seq, without, lacks: lackedBlocks(deps.initialized, shard.blocks()) };
    } catch (thrown) {
      const error = ensureError(thrown);
      const next = failedRecord(error);
      if (next !== undefined && aside.size < ASIDE_MAX) aside.set(next.seq, next);
      else if (next !== undefined || UNUSABLE.includes(error.code)) {
        return { seq, without, lacks: [], problem: `${error.code}: ${error.message}` };
      } else throw error;
    }
  }
}

/** Errors which mean that a state cannot be rebuilt here; they say nothing about the broker. */
const UNUSABLE: readonly ErrorCode[] = [
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "UNKNOWN_RULES",
  "TOO_LARGE",
];

/** Returns the record that an error of a fold names; undefined for another error. */
export function failedRecord({ code, details }: PserverError): FailedRecord | undefined {
  const { seq, trainer } = details;
  if (code !== "FOLD_FAILED" || typeof seq !== "number") return undefined;
  return typeof trainer === "string" ? { seq, trainer } : { seq };
}

/** Folds the records of a journal up to the last one of the wanted state. */
async function foldJournal(deps: RebuildDeps, shard: Shard, wanted: WantedState): Promise<void> {
  const { journal } = deps;
  const { generation, seq: to, without = [] } = wanted;
  if (shard.seq >= to) return;
  const credit = new Credit(CREDIT_BYTES, deps.payloadBytesMax);
  // A checksum that was noted after a record that is left out includes that record.
  const comparableTo = Math.min(...without) - 1;
  const noted = notedChecksums(deps.watermark, generation).filter(
    (each) => each.seq <= comparableTo,
  );
  let stop = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => reject(silence(journal.shard, shard.seq + 1));
      let silent = setTimeout(giveUp, SILENCE_MS);
      const loop = new FoldLoop({
        number: journal.shard,
        shard: shardWithout(shard, without),
        reader: new JournalReader({ ...deps, isReplicated: journal.isReplicated, credit }),
        coalescer: new Coalescer(),
        events: {
          locate: () => Promise.resolve({ stream: journal.stream(generation), generation, noted }),
          mayFold: () => shard.seq < to,
          onFolded: () => undefined,
          onSettled: () => undefined,
          onAdvanced: () => {
            clearTimeout(silent);
            silent = setTimeout(giveUp, SILENCE_MS);
            if (shard.seq >= to) resolve();
          },
          onGap: ({ from, to }) => Promise.reject(journalDamaged(journal.shard, from, to + 1)),
          onReplicaDamaged: () => undefined,
          onFailure: reject,
        },
      });
      stop = () => {
        clearTimeout(silent);
        loop.stop();
      };
      void loop.start();
    });
  } finally {
    stop();
  }
}

/** Returns the shard as one that passes over these records without folding them. */
function shardWithout(
  shard: Shard,
  seqs: readonly number[],
): Pick<Shard, "seq" | "apply" | "expect"> {
  return {
    get seq() {
      return shard.seq;
    },
    expect: (noted) => shard.expect(noted),
    apply: (record) => {
      if (!seqs.includes(record.seq)) return shard.apply(record);
      shard.skipTo(record.seq);
      return undefined;
    },
  };
}

function silence(shard: number, seq: number): PserverError {
  return new PserverError(
    "TIMEOUT",
    `shard ${shard}: record ${seq} was not read within ${SILENCE_MS} ms`,
    { shard, seq },
  );
}
