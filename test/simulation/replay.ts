import type { Block } from "../../src/actors/fold/block-actor.ts";
import type { Fold, FoldMaker, MemoryPool } from "./fold-maker.ts";
import { ELEMENTS, PARAMETER } from "./intents.ts";
import type { Entry, Journal } from "./journal.ts";
import { type Effect, Reference } from "./reference.ts";
import type { Verdicts } from "./verdicts.ts";
import { promise } from "./violation.ts";

/** The place of an element of a block in the parameter. */
export function placeOf(index: number, element: number): number {
  return index * ELEMENTS + element;
}

/** Result of {@link replayAll}. */
export interface Replay {
  /** Digests of the state after the requested records. */
  readonly digests: ReadonlyMap<number, string>;
  /** Number of changes of each element, by {@link placeOf}. */
  readonly applied: ReadonlyMap<number, number>;
}

/**
 * Folds the journal from its first record. Every record must change exactly the bytes that the
 * reference says, and be answered as the owners answered it.
 */
export function replayAll(
  journal: Journal,
  maker: FoldMaker,
  pool: MemoryPool,
  verdicts: Verdicts,
  digestsAt: ReadonlySet<number>,
): Replay {
  const changed = new Map<number, BigInt64Array>();
  const created = new Set<number>();
  const removed = new Set<number>();
  const fold = maker.create(
    pool.options({
      beforeChange: (block) => changed.set(block.index, elements(block)),
      blockAdded: (block) => created.add(block.index),
      blockRemoved: (block) => removed.add(block.index),
    }),
  );
  const reference = new Reference();
  const applied = new Map<number, number>();
  const digests = new Map<number, string>();
  if (digestsAt.has(0)) digests.set(0, fold.digest());
  for (const entry of journal.history) {
    for (const set of [changed, created, removed]) set.clear();
    if (skipGap(fold, entry) && digestsAt.has(fold.seq)) digests.set(fold.seq, fold.digest());
    verdicts.noteSettled(entry.seq, fold.apply(entry));
    const effect = reference.effectOf(entry);
    const seen = observe(fold, changed, created, removed, applied);
    const wanted = expectation(effect);
    promise(
      seen === wanted,
      () => `record ${entry.seq} (${JSON.stringify(entry.intent)}) does ${seen}, not ${wanted}`,
    );
    if (digestsAt.has(entry.seq)) digests.set(entry.seq, fold.digest());
  }
  return { digests, applied };
}

/** Skips the sequences without records before a record; false if there are none. */
export function skipGap(fold: Fold, entry: Entry): boolean {
  if (entry.seq === fold.seq + 1) return false;
  fold.skipTo(entry.seq - 1);
  return true;
}

/** The effect of a record on the bytes of the blocks, in words. */
function observe(
  fold: Fold,
  changed: ReadonlyMap<number, BigInt64Array>,
  created: ReadonlySet<number>,
  removed: ReadonlySet<number>,
  applied: Map<number, number>,
): string {
  const gone = [...removed].filter((index) => !created.has(index)).sort();
  const words = gone.map((index) => `remove ${index}`);
  for (const index of created) {
    const block = fold.block(PARAMETER, index);
    const empty = block !== undefined && elements(block).every((element) => element === 0n);
    words.push(empty ? `create ${index}` : `create ${index} with values`);
  }
  for (const [index, before] of changed) {
    const block = fold.block(PARAMETER, index);
    if (block === undefined || created.has(index)) continue;
    const after = elements(block);
    for (let element = 0; element < ELEMENTS; element++) {
      const difference = Number((after[element] ?? 0n) - (before[element] ?? 0n));
      if (difference === 0) continue;
      const place = placeOf(index, element);
      applied.set(place, (applied.get(place) ?? 0) + difference);
      words.push(`add ${difference} to ${index}:${element}`);
    }
  }
  return words.join(", ") || "nothing";
}

function expectation(effect: Effect): string {
  switch (effect.kind) {
    case "none":
      return "nothing";
    case "add":
      return effect.indexes.map((index) => `add 1 to ${index}:${effect.element}`).join(", ");
    case "create":
      return `create ${effect.index}`;
    case "remove":
      return effect.indexes.map((index) => `remove ${index}`).join(", ") || "nothing";
  }
}

function elements(block: Block): BigInt64Array {
  return new BigInt64Array(Uint8Array.from(block.values()).buffer);
}
