import { randomUUID } from "node:crypto";
import { ensureError, type Fallback, PserverError, quoteName } from "../../protocol/index.ts";
import type { Block } from "../fold/block.ts";
import { Shard } from "../fold/shard.ts";
import { Credit } from "../journal/credit.ts";
import { type Holding, loadSnapshot } from "../owner/holding.ts";
import type { MarkKeeper } from "../owner/mark-keeper.ts";
import { OwnedJournal } from "../owner/owned-journal.ts";
import type { ShardOwnerOptions } from "../owner/shard-owner-options.ts";
import { ShardSnapshots } from "../owner/shard-snapshots.ts";
import type { Manifest, StoredManifest } from "../snapshot/manifest.ts";
import { blockKey } from "../snapshot/state.ts";
import type { LackedBlock, RecoveryChoice, ShardFindings } from "./findings.ts";
import { foldPrefix } from "./fold-prefix.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { lackedBlocks } from "./inspect-snapshots.ts";

/** What a shard is recovered with: as an owner has it, on one connection. */
export type RecoverOptions = Pick<
  ShardOwnerOptions,
  | "shard"
  | "host"
  | "subjects"
  | "journal"
  | "journalStorage"
  | "store"
  | "manager"
  | "inboxPrefix"
  | "partBytesMax"
  | "snapshotBudget"
> & {
  readonly connection: ShardOwnerOptions["journalConnection"];
  /** How far former owners had folded, as they noted it outside the journal. */
  readonly marks: Pick<MarkKeeper, "read">;
  readonly payloadBytesMax: number;
  /** The blocks that the shard must have. */
  readonly initialized: readonly InitializedBlock[];
  /** Says which records were read and stored so far, for whoever waits. */
  readonly onStep?: (step: RecoveryStep) => void;
};

/** What has been done of a recovery. Until `committed` the shard is as it was. */
export type RecoveryStep = "loaded" | "folded" | "committed" | "opened";

/** A shard that goes on. */
export interface RecoveredState {
  readonly shard: number;
  /** The new generation. */
  readonly generation: number;
  /** What the shard did not keep of each journal that was left, the newest last. */
  readonly fallbacks: readonly Fallback[];
}

/** Bytes of journal under way while a prefix is folded. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/**
 * Has a shard go on from what was chosen, under a new generation, so that no position means two things.
 * The one write that does it is a manifest after the newest that was found: whoever has written since,
 * be it an owner or another recovery, makes it fail, and nothing is changed. A host completes what is
 * interrupted after it.
 * @throws NOT_OWNER if somebody else has written a manifest since the shard was looked at;
 * SNAPSHOT_DAMAGED, JOURNAL_DAMAGED if what was chosen cannot be read any more; INCOMPLETE if blocks of
 * initialized parameters would be missing; NO_SPACE.
 */
export async function recoverShard(
  options: RecoverOptions,
  findings: ShardFindings,
  choice: RecoveryChoice,
): Promise<RecoveredState> {
  const { host, journal, journalStorage: storage, store, marks, onStep } = options;
  const entries = await store.manifestEntries();
  const base = entries.find(({ seq }) => seq === choice.manifestSeq)?.manifest;
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const { shard, stored } = await rebuild(options, choice, base);
  const owner = randomUUID();
  const snapshots = new ShardSnapshots(
    { ...options, snapshotBytes: 0, retainBytes: 0, onSnapshotFailed: () => undefined },
    {
      holding: { shard, stored, manifest: fence(options, findings, { base, newest, owner }) },
      kept: [],
      onProgress: () => undefined,
      onDeposed: () => undefined,
    },
  );
  const owned = new OwnedJournal({
    host,
    owner,
    journal,
    storage,
    shard,
    snapshots,
    marks,
    onReplaced: () => onStep?.("committed"),
    onHoleStays: () => undefined,
  });
  try {
    await owned.replace(leftJournals(findings, choice, { shard, newest }));
    onStep?.("opened");
  } catch (error) {
    // Once it is committed a host may take the shard over at once, and makes the journal itself.
    const isCommitted = snapshots.head().generation > findings.generation;
    if (ensureError(error).code !== "NOT_OWNER" || !isCommitted) throw error;
  } finally {
    snapshots.close();
    owned.close();
  }
  const { generation, fallbacks } = snapshots.head();
  return { shard: options.shard, generation, fallbacks };
}

/** The state that was chosen, and the pieces of it that are stored. */
async function rebuild(
  options: RecoverOptions,
  choice: RecoveryChoice,
  base: Manifest | undefined,
): Promise<Pick<Holding, "shard" | "stored">> {
  const { subjects, shard: number, store, journal, payloadBytesMax, onStep } = options;
  // A block made anew may have the epoch and version of the one whose pieces are stored.
  const removed = new Set<string>();
  const hooks = {
    blockRemoved: ({ parameter, index }: Block) => removed.add(blockKey(parameter, index)),
  };
  if (choice.manifestSeq !== undefined && base === undefined) throw snapshotGone(number, choice);
  const { shard, stored } =
    base === undefined
      ? { shard: new Shard({ subjects, shard: number, hooks }), stored: new Map() }
      : await loadSnapshot(
          { subjects, shard: number, store, hooks },
          { seq: choice.manifestSeq ?? 0, manifest: base },
        );
  onStep?.("loaded");
  if (choice.from === "prefix") {
    const { generation, seq: to } = choice;
    const credit = new Credit(CREDIT_BYTES, payloadBytesMax);
    await foldPrefix({ ...options, shard, journal, generation, to, credit });
  }
  const lacked = lackedBlocks(options.initialized, shard.blocks());
  if (lacked.length > 0) throw incomplete(number, lacked);
  onStep?.("folded");
  return { shard, stored: new Map([...stored].filter(([key]) => !removed.has(key))) };
}

/** As if the newest manifest were this recovery's own: the next one follows it, or is refused. */
function fence(
  { host }: RecoverOptions,
  { generation, manifestSeq: seq }: ShardFindings,
  found: {
    readonly base: Manifest | undefined;
    readonly newest: Manifest | undefined;
    readonly owner: string;
  },
): StoredManifest {
  const { base, newest, owner } = found;
  const manifest: Manifest = {
    term: (newest?.term ?? 0) + 1,
    host,
    owner,
    generation,
    created: "",
    fallbacks: base?.fallbacks ?? [],
    seq: 0,
    recordCrc: 0,
    state: [],
    pieces: [],
  };
  return { seq, manifest };
}

/** What is not kept of the journals from the one that the chosen state belongs to, to the newest. */
function leftJournals(
  { generation, lastKnownSeq }: ShardFindings,
  choice: RecoveryChoice,
  { shard, newest }: { readonly shard: Shard; readonly newest: Manifest | undefined },
): Fallback[] {
  const left: Fallback[] = [];
  for (let each = choice.generation; each < generation; each++) {
    const from = each === choice.generation ? shard.seq + 1 : 1;
    const to = newest?.fallbacks.find((fallback) => fallback.generation === each)?.to ?? 0;
    left.push({ generation: each, from, to: Math.max(to, from - 1) });
  }
  const { from } = choice.lost;
  return [...left, { generation, from, to: Math.max(lastKnownSeq, from - 1) }];
}

function incomplete(shard: number, lacked: readonly LackedBlock[]): PserverError {
  const [first] = lacked;
  return new PserverError(
    "INCOMPLETE",
    `shard ${shard}: ${lacked.length} blocks of initialized parameters would be missing, the first is block ${first?.index} of ${quoteName(first?.parameter ?? "")}`,
    { shard, missing: lacked.length },
  );
}

function snapshotGone(shard: number, { manifestSeq }: RecoveryChoice): PserverError {
  const text = `shard ${shard}: the manifest ${manifestSeq} that was chosen is gone`;
  return new PserverError("SNAPSHOT_DAMAGED", text, { shard, seq: manifestSeq });
}
