import {
  ensureError,
  type Fallback,
  type JobSubjects,
  type Position,
} from "../../protocol/index.ts";
import { NO_RECORDS } from "../fold/journal-checksum.ts";
import { JournalHead } from "../journal/journal-check.ts";
import type { Manifest, StoredManifest } from "../journal/manifest.ts";
import type { MarkKeeper } from "../journal/mark-keeper.ts";
import type { SnapshotBudget } from "../journal/snapshotter.ts";
import { OwnedJournal } from "../owner/owned-journal.ts";
import type { RecoveredShard } from "../owner/recover-shard.ts";
import { ShardSnapshots, type SnapshotContext } from "../owner/shard-snapshots.ts";

/** Dependencies of {@link continueShard}: those of an owner, without what it needs to serve. */
export interface ContinueDeps extends Pick<SnapshotContext, "shard" | "journal" | "store"> {
  readonly host: string;
  readonly subjects: JobSubjects;
  readonly journalStorage: "file" | "memory";
  readonly partBytesMax: number;
  readonly snapshotBudget: SnapshotBudget;
  /** Mark of former owners. */
  readonly marks: Pick<MarkKeeper, "read">;
  /** Called after each stage. */
  readonly onStage?: (stage: "committed" | "opened") => void;
}

/** The state that a shard goes on from, and what it goes on from it in place of. */
export interface Continuation extends Pick<RecoveredShard, "shard" | "stored"> {
  /** Token of this continuation in its manifests. */
  readonly owner: string;
  /** Generation of the journal that is abandoned. */
  readonly generation: number;
  /** Sequence of the newest manifest, after which the new one is written, and its term; 0 without one. */
  readonly manifestSeq: number;
  readonly term: number;
  /** Losses with journals that were replaced before the state; those with this one are `left`. */
  readonly fallbacks: readonly Fallback[];
  readonly left: readonly Fallback[];
  /** Manifests of snapshots of the abandoned journal that stay, with it, oldest first; none if empty. */
  readonly past: readonly StoredManifest[];
}

/** A shard that goes on under a new generation. */
export interface Continued {
  readonly shard: number;
  /** The new generation. */
  readonly generation: number;
  /** Records lost with each journal that was abandoned, the newest journal last. */
  readonly fallbacks: readonly Fallback[];
}

/**
 * Lets a shard go on from a state, under a new generation, so that positions stay unambiguous. The decisive
 * write is a manifest after the newest one that is known: if somebody else has written since, it fails, and
 * nothing changes. If it is interrupted later, a host completes the rest.
 * @throws NOT_OWNER if somebody else has written a manifest; NO_SPACE.
 */
export async function continueShard(deps: ContinueDeps, to: Continuation): Promise<Continued> {
  const { host, journal, journalStorage: storage, marks, onStage } = deps;
  const { shard, stored, owner, generation, past } = to;
  const { subjects, snapshotBudget, partBytesMax } = deps;
  const snapshots = new ShardSnapshots(
    {
      ...deps,
      worker: {
        ...{ subjects, snapshotBudget },
        settings: { partBytesMax, snapshotBytes: 0, retainBytes: 0 },
        // What an archiver has not copied does not keep a shard from going on.
        archivers: { copied: () => Promise.resolve([]) },
      },
    },
    { recovered: { shard, stored, manifest: fence(deps, to) }, kept: past },
    {
      onProgress: () => undefined,
      onDeposed: () => undefined,
      onSnapshotFailed: () => undefined,
    },
  );
  const owned = new OwnedJournal({
    ...{ host, owner, journal, storage, shard, snapshots, marks },
    head: new JournalHead(deps.shard),
    onReplaced: () => onStage?.("committed"),
    onFellBack: () => undefined,
    onGapRemains: () => undefined,
  });
  try {
    await owned.replace(to.left, past.length > 0);
    onStage?.("opened");
  } catch (error) {
    // After the commit a host may take the shard over at once, and creates the journal itself.
    const isCommitted = snapshots.head().generation > generation;
    if (ensureError(error).code !== "NOT_OWNER" || !isCommitted) throw error;
  } finally {
    snapshots.close();
    owned.close();
  }
  const head = snapshots.head();
  return { shard: deps.shard, generation: head.generation, fallbacks: head.fallbacks };
}

/**
 * Records lost with each journal from that of a state to the newest. `from`: the state's position; `lastSeq`:
 * the last record known of the newest journal.
 */
export function leftJournals(
  from: Position,
  newest: { readonly generation: number; readonly fallbacks: readonly Fallback[] } | undefined,
  { generation, lastSeq }: { readonly generation: number; readonly lastSeq: number },
): Fallback[] {
  const left: Fallback[] = [];
  for (let each = from.generation; each <= generation; each++) {
    const first = each === from.generation ? from.seq + 1 : 1;
    const known = newest?.fallbacks.findLast((fallback) => fallback.generation === each)?.to ?? 0;
    const to = each === generation ? lastSeq : known;
    left.push({ generation: each, from: first, to: Math.max(to, first - 1) });
  }
  return left;
}

/** A manifest in place of the newest one, as if this continuation had written it: the next must follow it. */
function fence({ host }: ContinueDeps, to: Continuation): StoredManifest {
  const { owner, generation, manifestSeq, term, fallbacks } = to;
  const manifest: Manifest = {
    ...{ term: term + 1, host, owner, generation, created: "", fallbacks },
    ...{ seq: 0, recordCrc: 0, checksum: NO_RECORDS, state: [], pieces: [] },
  };
  return { seq: manifestSeq, manifest };
}
