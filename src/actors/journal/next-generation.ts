import {
  ensureError,
  extendedTo,
  type Fallback,
  type JobSubjects,
  type Position,
  withFallbacks,
} from "../../protocol/index.ts";
import { BufferPool } from "../../transport/buffers.ts";
import { parseFoldState } from "../fold/fold-state.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "./journal.ts";
import { lastRecordSeq } from "./journal-check.ts";
import type { PassedRewind, StoredManifest } from "./manifest.ts";
import { type BlockPieces, readSnapshotState, type SnapshotStore } from "./snapshot-store.ts";
import { SnapshotBudget } from "./snapshots/snapshot-budget.ts";
import { type ManifestHeader, Snapshotter, type SnapshotterDeps } from "./snapshots/snapshotter.ts";

// A shard goes on under the next generation when it is new, when its journal in memory is gone, and when a person
// lets it go on from another state: by "pserver recover", "rewind" or "fork". The order of writes is the same each
// time:
//
// 1. The pieces of the state. Nobody knows of them yet: after a crash the next owner removes them.
// 2. A manifest of the next generation, without the creation time of a stream. This write decides: the broker takes
//    it only after the manifest that it replaces, and refuses from then on what was to follow that one.
// 3. The abandoned journals are set aside: they take no further records.
// 4. The stream of the next generation is made.
// 5. The manifest again, with the stream's creation time, and with the records among the losses that trainers have
//    stored between 2 and 3. From now on a stream that is missing, or another one, is a loss.
//
// After a crash between 2 and 5 the next owner finds no creation time and makes 3 to 5, each of which may be repeated.
// Whoever replaces that state by another one, under a generation after the next, finds out first what it has lost.
// Steps 2 and 5 are compare-and-swap: whoever was overtaken gets NOT_OWNER there.

/** What {@link openGeneration} needs: the journal and the shard, and how manifests are written. */
export interface GenerationWriter {
  readonly journal: Pick<Journal, "rules" | "setAside" | "open" | "remove">;
  readonly storage: "file" | "memory";
  readonly shard: Pick<Shard, "rules">;
  /** Returns the header of this writer's newest manifest. */
  readonly manifestHeader: () => ManifestHeader;
  /**
   * Stores the shard, and a manifest after the newest one.
   * @throws NOT_OWNER if somebody else has written one since.
   */
  readonly commit: (header: () => ManifestHeader) => Promise<unknown>;
}

/**
 * Makes or completes the stream of the generation that the newest manifest announces, and commits its creation time:
 * steps 3 to 5 above. Removes abandoned journals if the broker has no storage for the stream.
 * @returns the state of the stream.
 * @throws NO_SPACE; NOT_OWNER.
 */
export async function openGeneration(writer: GenerationWriter): Promise<JournalInfo> {
  const { journal, storage, shard, manifestHeader: header, commit } = writer;
  const { past, ...announced } = header();
  const { generation } = announced;
  const abandoned = announced.fallbacks.map((fallback) => fallback.generation);
  // A journal in memory always begins with its rules, so that one that was emptied does not look as if it was just
  // made.
  const isNeeded = shard.rules < journal.rules || storage === "memory";
  const rules = isNeeded ? Math.max(shard.rules, journal.rules) : undefined;
  const abandonedInfos = await journal.setAside(abandoned);
  let kept = past === undefined ? {} : { past };
  let info: JournalInfo;
  try {
    info = await journal.open(generation, rules);
  } catch (error) {
    if (ensureError(error).code !== "NO_SPACE") throw error;
    await journal.remove(abandoned);
    kept = {};
    info = await journal.open(generation, rules);
  }
  const fallbacks = withEnds(announced.fallbacks, abandonedInfos);
  const { created } = info;
  // The manifest may have been written again under the next term since.
  await commit(() => ({ ...announced, ...kept, term: header().term, created, fallbacks }));
  return info;
}

/** Returns losses that reach to the ends of the abandoned journals. */
function withEnds(
  fallbacks: readonly Fallback[],
  abandoned: ReadonlyMap<number, JournalInfo>,
): readonly Fallback[] {
  return [...abandoned].reduce(
    (before, [generation, info]) => extendedTo(before, { generation, seq: lastRecordSeq(info) }),
    fallbacks,
  );
}

/**
 * Returns the losses that a manifest names, as they are to be named by the manifest of a later generation. If what it
 * announces was interrupted before step 5, its abandoned journals hold records that it does not name, and may take
 * more: then they are set aside first. The later generation removes the older ones of them, and with them all knowledge
 * of where they ended.
 */
export async function finalFallbacks(
  journal: Pick<Journal, "setAside">,
  { created, fallbacks }: Pick<ManifestHeader, "created" | "fallbacks">,
): Promise<readonly Fallback[]> {
  if (created !== "") return fallbacks;
  return withEnds(fallbacks, await journal.setAside(fallbacks.map(({ generation }) => generation)));
}

/** Dependencies of {@link continueShard}. */
export interface ContinueDeps extends Pick<GenerationWriter, "journal" | "storage"> {
  readonly shard: number;
  readonly subjects: JobSubjects;
  readonly store: SnapshotterDeps["store"];
  /** Limit of the state's bytes in one message. */
  readonly partBytesMax: number;
  /** Called after each stage. `committed`: the deciding manifest is stored; `opened`: the shard can be taken over. */
  readonly onStage?: ((stage: "committed" | "opened") => void) | undefined;
}

/** The state from which a shard goes on, and the manifest and journal that it replaces. */
export interface Continuation {
  readonly shard: Shard;
  /** Pieces of the state that are stored already, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
  /** Host and token of the run, as its manifests name them. */
  readonly host: string;
  readonly owner: string;
  /** Sequence and term of the manifest to replace, the newest when the run read it; 0 without one. */
  readonly replaced: { readonly seq: number; readonly term: number };
  /** Generation of the abandoned journal; 0 for none. */
  readonly generation: number;
  /**
   * Records lost with journals that were replaced before, of the replaced manifest by {@link finalFallbacks}, and with
   * this one, oldest first.
   */
  readonly fallbacks: readonly Fallback[];
  /** The last rewind that the state has gone through; that of the run itself if it is one. */
  readonly rewind?: PassedRewind | undefined;
  /** Whether the abandoned journal stays readable, with its snapshots. A journal in memory never does. */
  readonly keepsPast: boolean;
}

/** A shard that goes on under a new generation. */
export interface ContinuedShard {
  readonly shard: number;
  /** The new generation. */
  readonly generation: number;
  /** Records lost with each journal that was abandoned, the newest journal last. */
  readonly fallbacks: readonly Fallback[];
}

/**
 * Lets a shard go on from a state under the next generation, as described above. Removes no snapshot: the owner that
 * takes the shard over removes those that are not needed any more.
 * @throws NOT_OWNER if somebody else has written a manifest since; nothing has changed then; NO_SPACE.
 */
export async function continueShard(deps: ContinueDeps, to: Continuation): Promise<ContinuedShard> {
  const { journal, storage, onStage } = deps;
  const { shard, stored, host, owner, replaced, fallbacks } = to;
  const budget = new SnapshotBudget(new BufferPool());
  const snapshotter = new Snapshotter({ ...deps, budget, stored, onProgress: () => undefined });
  const firstHeader: ManifestHeader = {
    ...{ term: replaced.term + 1, host, owner, generation: to.generation + 1, created: "" },
    fallbacks: withFallbacks(fallbacks, []),
    ...(to.keepsPast && storage === "file" && { past: to.generation }),
    ...(to.rewind && { rewind: to.rewind }),
  };
  let newest: Pick<StoredManifest, "seq"> & { readonly manifest: ManifestHeader } = {
    seq: replaced.seq,
    manifest: firstHeader,
  };
  const header = (): ManifestHeader => newest.manifest;
  const commit = (made: () => ManifestHeader): Promise<StoredManifest> =>
    snapshotter.cut(
      shard,
      made,
      () => newest.seq,
      (committed) => {
        newest = committed;
      },
    );
  shard.restartJournal();
  await commit(header);
  onStage?.("committed");
  try {
    await openGeneration({ journal, storage, shard, manifestHeader: header, commit });
    onStage?.("opened");
  } catch (error) {
    // A host may take the shard over as soon as the manifest is stored, and then makes the journal itself.
    if (ensureError(error).code !== "NOT_OWNER") throw error;
  }
  return { shard: deps.shard, generation: header().generation, fallbacks: header().fallbacks };
}

/**
 * Completes a continuation that was interrupted once its deciding manifest was stored: steps 3 to 5, for which the
 * state need not be in memory. Until then the abandoned journals take records, unless a host takes the shard over.
 * @returns the newest manifest; `newest` itself if the continuation is complete.
 * @throws NOT_OWNER if somebody else has written a manifest since; SNAPSHOT_DAMAGED; NO_SPACE.
 */
export async function completeContinuation(
  deps: Pick<ContinueDeps, "journal" | "storage"> & {
    readonly store: Pick<SnapshotStore, "read" | "commit">;
  },
  newest: StoredManifest,
  by: Pick<ManifestHeader, "host" | "owner">,
): Promise<StoredManifest> {
  const { seq, recordCrc, checksum, state, pieces, ...announced } = newest.manifest;
  if (announced.created !== "") return newest;
  const { journal, storage, store } = deps;
  const { rules } = parseFoldState((await readSnapshotState(store, newest.manifest)).fold);
  let completed = newest;
  await openGeneration({
    ...{ journal, storage, shard: { rules } },
    manifestHeader: () => ({ ...announced, ...by }),
    commit: async (header) => {
      const manifest = { ...header(), seq, recordCrc, checksum, state, pieces };
      completed = { seq: await store.commit(manifest, newest.seq), manifest };
    },
  });
  return completed;
}

/**
 * Computes the records lost with each journal, from the one of a state to the newest. `from` is the state's position,
 * `lastSeq` the last record known of the newest journal.
 */
export function journalLosses(
  from: Position,
  newest: { readonly generation: number; readonly fallbacks: readonly Fallback[] } | undefined,
  { generation, lastSeq }: { readonly generation: number; readonly lastSeq: number },
): Fallback[] {
  const losses: Fallback[] = [];
  for (let each = from.generation; each <= generation; each++) {
    const fromSeq = each === from.generation ? from.seq + 1 : 1;
    const knownTo = newest?.fallbacks.findLast((fallback) => fallback.generation === each)?.to ?? 0;
    const to = each === generation ? lastSeq : knownTo;
    losses.push({ generation: each, from: fromSeq, to: Math.max(to, fromSeq - 1) });
  }
  return losses;
}
