import type { Shard } from "../../actors/fold/shard.ts";
import { ensureError, type Position, type WireError } from "../../protocol/index.ts";
import { basesOf, type Inventory, type ReplayBase, reachOf, takeInventory } from "../reach.ts";
import { foldRecords } from "../replay/fold-records.ts";
import { type ReplayOptions, shardAt } from "../replay/replay-shard.ts";
import type { ShardHistory } from "../source.ts";

/** What was found out about one snapshot, or about the records after a position. */
export type VerifiedPlace = Position &
  (
    | { readonly kind: "equal" | "different" | "first" }
    | { readonly kind: "damaged" | "unreadable"; readonly error: WireError }
  );

/** What was found out about a shard. */
export interface ShardVerification {
  readonly shard: number;
  /** Records that were folded. */
  readonly records: number;
  /**
   * In order: snapshots that are `equal` to the fold, `different`, or `damaged`; the `first` of each part that
   * can be folded, which nothing before it can be compared with; positions after which the journal is
   * `unreadable`.
   */
  readonly places: readonly VerifiedPlace[];
}

/** How {@link verifyShard} verifies. */
export interface VerifyOptions extends ReplayOptions {
  /** The fold begins at the nearest snapshot at or before it; by default at the oldest. */
  readonly from?: Position | undefined;
}

/** A shard that was folded. */
interface Folded {
  readonly shard: Shard;
  readonly generation: number;
}

/** A verification under way. */
interface Verifying {
  readonly history: ShardHistory;
  readonly inventory: Inventory;
  readonly options: VerifyOptions;
  readonly places: VerifiedPlace[];
  /** What was folded so far; undefined before a snapshot could be loaded, and after damage. */
  folded: Folded | undefined;
  records: number;
}

/**
 * Folds all that is kept of a shard, from its oldest snapshot on, and compares the fold with each later
 * snapshot: state, values and slots. After a damage it goes on from the next snapshot.
 * @returns the findings, and the shard at the end of its newest journal; undefined if damage hides it.
 * @throws what the source throws if it cannot be read now; the reason of the signal.
 */
export async function verifyShard(
  history: ShardHistory,
  options: VerifyOptions,
): Promise<{ verification: ShardVerification; end: Folded | undefined }> {
  const inventory = await takeInventory(history);
  const state: Verifying = {
    ...{ history, inventory, options, places: [] },
    ...{ folded: undefined, records: 0 },
  };
  const totalRecords = recordsToFold(inventory);
  for (const base of basesFrom(inventory, options.from)) {
    await foldTo(state, base);
    await compareWith(state, base);
    options.onProgress?.(state.records, Math.max(totalRecords, state.records));
  }
  const newest = reachOf(inventory).at(-1);
  if (newest !== undefined) await foldTo(state, { ...newest, seq: newest.lastSeq });
  const { records, places, folded } = state;
  return { verification: { shard: history.shard, records, places }, end: folded };
}

/** The snapshots to compare with: all from the nearest at or before a position on. */
function basesFrom(inventory: Inventory, from: Position | undefined): ReplayBase[] {
  const bases = basesOf(inventory);
  if (from === undefined) return bases;
  const isAfter = ({ generation, seq }: ReplayBase): boolean =>
    generation > from.generation || (generation === from.generation && seq > from.seq);
  const first = bases.findLastIndex((base) => !isAfter(base));
  return bases.slice(Math.max(0, first));
}

function recordsToFold(inventory: Inventory): number {
  return reachOf(inventory).reduce((sum, { firstSeq, lastSeq }) => sum + lastSeq - firstSeq, 0);
}

/** Folds up to a position; after damage, or in another generation, the fold ends. */
async function foldTo(state: Verifying, { generation, seq }: Position): Promise<void> {
  const { folded, history, options, inventory } = state;
  if (folded === undefined) return;
  const { shard } = folded;
  const from = shard.seq;
  const isConnected = inventory.spans.some(
    (span) => span.generation === generation && span.firstSeq <= from + 1 && seq <= span.lastSeq,
  );
  if (folded.generation !== generation || (seq > from && !isConnected)) {
    state.folded = undefined;
    return;
  }
  try {
    await foldRecords(shard, history, { generation, seq }, options);
  } catch (error) {
    const found = ensureError(error);
    if (found.code !== "JOURNAL_DAMAGED" && found.code !== "HISTORY_LOST") throw error;
    state.places.push({ generation, seq: shard.seq, kind: "unreadable", error: found.toWire() });
    state.folded = undefined;
  } finally {
    state.records += shard.seq - from;
  }
}

/** Compares the fold with a snapshot at its position; the snapshot begins the fold if there is none. */
async function compareWith(state: Verifying, base: ReplayBase): Promise<void> {
  const { history, options, places, folded } = state;
  const { generation, seq } = base;
  try {
    const shard = await shardAt(history, base, options.subjects);
    if (folded === undefined) state.folded = { shard, generation };
    const kind = folded === undefined ? "first" : isSame(folded.shard, shard);
    places.push({ generation, seq, kind });
  } catch (error) {
    const found = ensureError(error);
    if (found.code !== "SNAPSHOT_DAMAGED") throw error;
    places.push({ generation, seq, kind: "damaged", error: found.toWire() });
  }
}

function isSame(a: Shard, b: Shard): "equal" | "different" {
  return a.digest() === b.digest() ? "equal" : "different";
}

/** Whether nothing of a shard is damaged or different. */
export function isSound({ places }: ShardVerification): boolean {
  return places.every(({ kind }) => kind === "equal" || kind === "first");
}
