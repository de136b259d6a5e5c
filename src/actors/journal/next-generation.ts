import {
  ensureError,
  extendedTo,
  type Fallback,
  type JobSubjects,
  type Position,
  withFallbacks,
} from "../../protocol/index.ts";
import { BufferPool } from "../../transport/buffers.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "./journal.ts";
import { lastRecordSeq } from "./journal-check.ts";
import type { StoredManifest } from "./manifest.ts";
import type { BlockPieces, SnapshotStore } from "./snapshot-store.ts";
import { type ManifestHeader, SnapshotBudget, Snapshotter } from "./snapshotter.ts";

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
// Steps 2 and 5 are compare-and-swap: whoever was overtaken gets NOT_OWNER there.

/** Who puts a journal in place, and how its manifests are written. */
export interface GenerationWriter {
  readonly journal: Pick<Journal, "rules" | "setAside" | "open" | "remove">;
  readonly storage: "file" | "memory";
  readonly shard: Pick<Shard, "rules">;
  /** Head of this writer's newest manifest. */
  readonly manifestHeader: () => ManifestHeader;
  /** Stores the shard, and a manifest after that one. @throws NOT_OWNER if somebody else has written one since. */
  readonly commit: (header: () => ManifestHeader) => Promise<unknown>;
}

/**
 * Makes the stream of the generation that the newest manifest announces, or completes it, and commits its creation
 * time: steps 3 to 5 above. Removes abandoned journals if the broker has no storage for it.
 * @returns the state of the stream.
 * @throws NO_SPACE; NOT_OWNER.
 */
export async function openGeneration(writer: GenerationWriter): Promise<JournalInfo> {
  const { journal, storage, shard, manifestHeader: header, commit } = writer;
  const { past, ...announced } = header();
  const { generation } = announced;
  const abandoned = announced.fallbacks.map((fallback) => fallback.generation);
  // One in memory always begins with them, so that one that was emptied does not look as if it was just made.
  const isNeeded = shard.rules < journal.rules || storage === "memory";
  const rules = isNeeded ? Math.max(shard.rules, journal.rules) : undefined;
  const left = await journal.setAside(abandoned);
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
  const fallbacks = [...left].reduce(
    (before, [each, state]) => extendedTo(before, { generation: each, seq: lastRecordSeq(state) }),
    announced.fallbacks,
  );
  const { created } = info;
  // The manifest may have been renewed under the next term meanwhile.
  await commit(() => ({ ...announced, ...kept, term: header().term, created, fallbacks }));
  return info;
}

/** Dependencies of {@link continueShard}. */
export interface ContinueDeps extends Pick<GenerationWriter, "journal" | "storage"> {
  readonly shard: number;
  readonly subjects: JobSubjects;
  readonly store: Pick<SnapshotStore, "publish" | "commit">;
  /** Limit of the state's bytes in one message. */
  readonly partBytesMax: number;
  /** Called after each stage: the manifest that decides is stored; the shard can be taken over. */
  readonly onStage?: ((stage: "committed" | "opened") => void) | undefined;
}

/** The state that a shard goes on from, and what it takes the place of. */
export interface Continuation {
  readonly shard: Shard;
  /** Those of its pieces that are stored, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
  /** Who lets it go on, and the token of that run, as its manifests name them. */
  readonly host: string;
  readonly owner: string;
  /** The manifest that is replaced, the newest when the run looked: its sequence and term; 0 without one. */
  readonly replaced: { readonly seq: number; readonly term: number };
  /** Generation of the journal that is abandoned; 0 for none. */
  readonly generation: number;
  /** What is lost with the journals that were replaced before, and with this one, oldest first. */
  readonly fallbacks: readonly Fallback[];
  /** Whether the abandoned journal stays readable, with its snapshots. One in memory never does. */
  readonly keepsPast: boolean;
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
 * Lets a shard go on from a state under the next generation, as described above. It removes no snapshot: the owner
 * that takes the shard over removes those that are not needed any more.
 * @throws NOT_OWNER if somebody else has written a manifest since: nothing has changed then; NO_SPACE.
 */
export async function continueShard(deps: ContinueDeps, to: Continuation): Promise<Continued> {
  const { journal, storage, onStage } = deps;
  const { shard, stored, host, owner, replaced, fallbacks } = to;
  const budget = new SnapshotBudget(new BufferPool());
  const snapshotter = new Snapshotter({ ...deps, budget, stored, onProgress: () => undefined });
  const first: ManifestHeader = {
    ...{ term: replaced.term + 1, host, owner, generation: to.generation + 1, created: "" },
    fallbacks: withFallbacks(fallbacks, []),
    ...(to.keepsPast && storage === "file" && { past: to.generation }),
  };
  let newest: Pick<StoredManifest, "seq"> & { readonly manifest: ManifestHeader } = {
    seq: replaced.seq,
    manifest: first,
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
    // A host may take the shard over as soon as the manifest is there, and makes the journal itself.
    if (ensureError(error).code !== "NOT_OWNER") throw error;
  }
  return { shard: deps.shard, generation: header().generation, fallbacks: header().fallbacks };
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
