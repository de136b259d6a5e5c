import { JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import type { Cut } from "../points/point.ts";
import { startOf, takeInventory } from "../reach.ts";
import { foldRecords } from "../replay/fold-records.ts";
import { loadBase } from "../replay/replay-shard.ts";
import type { HistorySource } from "../source.ts";
import type { ElementPlace } from "./element.ts";
import type { ChangeTotal, ElementChange, ElementValue } from "./element-change.ts";
import { ElementWatcher } from "./element-watcher.ts";

/** Which part of the history is looked through. */
export interface BlameOptions {
  /** Changes after it; by default all that are kept. */
  readonly since?: Cut | undefined;
  readonly until: Cut;
  readonly signal: AbortSignal;
  /** Told each change, in order. */
  readonly onChange: (change: ElementChange) => void;
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/** What became of an element. */
export interface ElementBlame {
  readonly shard: number;
  readonly from: Position;
  readonly to: Position;
  /** Values at both ends; undefined if the element was not there. */
  readonly first: ElementValue | undefined;
  readonly last: ElementValue | undefined;
  readonly changes: number;
  /** Changes to or from values that are not finite; no sum has them. */
  readonly nonFinite: number;
  /** Sum of the changes of each trainer, by id; steps apart. */
  readonly trainers: ReadonlyMap<string, ChangeTotal>;
  /** Sum of the changes of each closed step. */
  readonly steps: ReadonlyMap<number, ChangeTotal>;
  /** Sum of all changes: last less first, unless the element was created, dropped or not finite meanwhile. */
  readonly sum: ElementValue;
}

/**
 * Folds the shard of an element again and finds the records that changed it. In `sync` jobs a change is that
 * of a step, with what each trainer's gradient added to the sum.
 * @throws as `replayShard`; BAD_VALUE if the points are of two generations of the shard's journal.
 */
export async function blameElement(
  source: HistorySource,
  place: ElementPlace,
  options: BlameOptions,
): Promise<ElementBlame> {
  const { until, since, signal, onProgress } = options;
  const history = source.shard(place.shard);
  const to = positionIn(until, place.shard);
  const from =
    since === undefined
      ? startOf(await takeInventory(history), to)
      : positionIn(since, place.shard);
  if (from.generation !== to.generation) throw replacedBetween(place.shard, from, to);
  const subjects = new JobSubjects(source.job);
  const shard = await loadBase(history, from, { subjects, signal });
  const baseSeq = shard.seq;
  const onFolded = (seq: number): void => onProgress?.(seq - baseSeq, to.seq - baseSeq);
  await foldRecords(shard, history, from, { signal, onFolded });
  const totals = new Totals();
  const watcher = new ElementWatcher(place, to.generation, subjects, (change) => {
    totals.add(change);
    options.onChange(change);
  });
  watcher.start(shard);
  const first = watcher.value;
  await foldRecords(shard, history, to, { signal, onFolded, visitor: watcher });
  const { shard: number } = place;
  return { shard: number, from, to, first, last: watcher.value, ...totals.result };
}

function positionIn(cut: Cut, shard: number): Position {
  const position = cut[shard];
  if (position !== undefined) return position;
  throw new PserverError("INTERNAL", `the cut has no shard ${shard}`);
}

function replacedBetween(shard: number, from: Position, to: Position): PserverError {
  return new PserverError(
    "BAD_VALUE",
    `shard ${shard}: expected points of one generation of its journal; received ${from.generation} and ${to.generation}`,
    { shard, expected: from.generation, received: to.generation },
  );
}

/** Adds up changes. */
class Totals {
  readonly #trainers: Map<string, ChangeTotal> = new Map();
  readonly #steps: Map<number, ChangeTotal> = new Map();
  #changes = 0;
  #nonFinite = 0;
  #sum: ElementValue = 0;

  add({ sender, step, change }: ElementChange): void {
    this.#changes += 1;
    if (change === undefined) return;
    if (typeof change === "number" && !Number.isFinite(change)) {
      this.#nonFinite += 1;
      return;
    }
    this.#sum = plus(this.#sum, change);
    if (step !== undefined) addTo(this.#steps, step.step, change);
    else if (sender !== undefined) addTo(this.#trainers, sender.trainer, change);
  }

  get result() {
    const [trainers, steps] = [this.#trainers, this.#steps];
    return { changes: this.#changes, nonFinite: this.#nonFinite, sum: this.#sum, trainers, steps };
  }
}

function addTo<Key>(totals: Map<Key, ChangeTotal>, key: Key, change: ElementValue): void {
  const { changes, sum } = totals.get(key) ?? { changes: 0, sum: 0 };
  totals.set(key, { changes: changes + 1, sum: plus(sum, change) });
}

/** The sum of two values; one that is the initial 0 takes the type of the other. */
function plus(a: ElementValue, b: ElementValue): ElementValue {
  if (typeof b === "bigint") return BigInt(a) + b;
  return Number(a) + b;
}
