import { randomUUID } from "node:crypto";
import { ensureError, type Fallback, PserverError, quoteName } from "../../protocol/index.ts";
import { Shard } from "../fold/shard.ts";
import { Credit } from "../journal/credit.ts";
import { JournalHead } from "../owner/journal-head.ts";
import type { MarkKeeper } from "../owner/mark-keeper.ts";
import { OwnedJournal } from "../owner/owned-journal.ts";
import { loadSnapshot, type RecoveredShard } from "../owner/recover-shard.ts";
import type { ShardOwnerDeps } from "../owner/shard-owner-deps.ts";
import { ShardSnapshots } from "../owner/shard-snapshots.ts";
import type { Manifest, StoredManifest } from "../snapshot/manifest.ts";
import { blockKey } from "../snapshot/state.ts";
import type { LackedBlock, RecoveryChoice, ShardFindings } from "./findings.ts";
import { foldPrefix } from "./fold-prefix.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { lackedBlocks } from "./inspect-snapshots.ts";

/** Dependencies of {@link acceptLoss}: those of an owner, on one connection. */
export type AcceptLossDeps = Pick<
  ShardOwnerDeps,
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
  readonly connection: ShardOwnerDeps["journalConnection"];
  /** Mark of former owners. */
  readonly marks: Pick<MarkKeeper, "read">;
  readonly payloadBytesMax: number;
  /** The blocks that the shard must have. */
  readonly initialized: readonly InitializedBlock[];
  /** Called after each stage. */
  readonly onStage?: (stage: RecoveryStage) => void;
};

/** Completed stage of a recovery. Before `committed`, the shard is unchanged. */
export type RecoveryStage = "loaded" | "folded" | "committed" | "opened";

/** A shard that had failed and goes on under a new generation. */
export interface AcceptedLoss {
  readonly shard: number;
  /** The new generation. */
  readonly generation: number;
  /** Records lost with each journal that was abandoned, the newest journal last. */
  readonly fallbacks: readonly Fallback[];
}

/** Credit of the journal reader while a prefix is folded. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/**
 * Continues a shard from the chosen state, under a new generation, so that positions stay unambiguous.
 * The decisive write is a manifest after the newest one found: if an owner or another recovery has
 * written since, it fails, and nothing changes. If it is interrupted later, a host completes the rest.
 * @throws NOT_OWNER if somebody else has written a manifest since the inspection; SNAPSHOT_DAMAGED,
 * JOURNAL_DAMAGED if the chosen state can no longer be read; INCOMPLETE if blocks of initialized
 * parameters would be missing; NO_SPACE.
 */
export async function acceptLoss(
  deps: AcceptLossDeps,
  findings: ShardFindings,
  choice: RecoveryChoice,
): Promise<AcceptedLoss> {
  const { host, journal, journalStorage: storage, store, marks, onStage } = deps;
  const entries = await store.manifestEntries();
  const base = entries.find(({ seq }) => seq === choice.manifestSeq)?.manifest;
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const { shard, stored } = await rebuild(deps, choice, base);
  const owner = randomUUID();
  const snapshots = new ShardSnapshots({
    ...deps,
    snapshotBytes: 0,
    retainBytes: 0,
    // What an archiver has not copied does not keep a shard from going on.
    archivers: { copied: () => Promise.resolve([]) },
    onSnapshotFailed: () => undefined,
    recovered: { shard, stored, manifest: fence(deps, findings, { base, newest, owner }) },
    kept: [],
    onProgress: () => undefined,
    onDeposed: () => undefined,
  });
  const owned = new OwnedJournal({
    host,
    owner,
    journal,
    storage,
    shard,
    snapshots,
    head: new JournalHead(deps.shard),
    marks,
    onReplaced: () => onStage?.("committed"),
    onGapRemains: () => undefined,
  });
  try {
    await owned.replace(leftJournals(findings, choice, { shard, newest }));
    onStage?.("opened");
  } catch (error) {
    // After the commit a host may take the shard over at once, and creates the journal itself.
    const isCommitted = snapshots.head().generation > findings.generation;
    if (ensureError(error).code !== "NOT_OWNER" || !isCommitted) throw error;
  } finally {
    snapshots.close();
    owned.close();
  }
  const { generation, fallbacks } = snapshots.head();
  return { shard: deps.shard, generation, fallbacks };
}

/** The chosen state, and its pieces that are stored. */
async function rebuild(
  deps: AcceptLossDeps,
  choice: RecoveryChoice,
  base: Manifest | undefined,
): Promise<Pick<RecoveredShard, "shard" | "stored">> {
  const { subjects, shard: number, journal, payloadBytesMax, onStage } = deps;
  if (choice.manifestSeq !== undefined && base === undefined) throw snapshotGone(number, choice);
  const { shard, stored } =
    base === undefined
      ? { shard: new Shard({ subjects, shard: number }), stored: new Map() }
      : await loadSnapshot(deps, { seq: choice.manifestSeq ?? 0, manifest: base });
  onStage?.("loaded");
  // A new block may have the epoch and version of a removed one whose pieces are stored.
  const removed = new Set<string>();
  shard.hooks = { blockRemoved: ({ parameter, index }) => removed.add(blockKey(parameter, index)) };
  if (choice.from === "prefix") {
    const { generation, seq: to } = choice;
    const credit = new Credit(CREDIT_BYTES, payloadBytesMax);
    await foldPrefix({ ...deps, shard, journal, generation, to, credit });
  }
  const lacked = lackedBlocks(deps.initialized, shard.blocks());
  if (lacked.length > 0) throw incomplete(number, lacked);
  onStage?.("folded");
  return { shard, stored: new Map([...stored].filter(([key]) => !removed.has(key))) };
}

/** A manifest in place of the newest one, as if this recovery had written it: the next must follow it. */
function fence(
  { host }: AcceptLossDeps,
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

/** Records lost with each journal from that of the chosen state to the newest. */
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
