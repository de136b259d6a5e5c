import { type Block, type BlockHeader, slotPlan } from "../actors/fold/block-actor.ts";
import { computedAs } from "../actors/fold/elements.ts";
import { parseFoldState } from "../actors/fold/fold-state.ts";
import { readable, readBatch, readRecordHeader } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import type { PieceRef } from "../actors/journal/manifest.ts";
import { readSnapshotState } from "../actors/journal/snapshot-store.ts";
import { toNumbers } from "../protocol/encoding/half-floats.ts";
import {
  DTYPES,
  elementCount,
  JobSubjects,
  type Position,
  PserverError,
  quoteName,
  type Synchronization,
  type TrainerRecord,
} from "../protocol/index.ts";
import { viewElements } from "./compare-models.ts";
import type { Cut } from "./points.ts";
import { type FoldVisitor, foldRecords, loadBase, replayShard } from "./replay/replay-shard.ts";
import {
  basesBefore,
  type HistorySource,
  type ShardHistory,
  startOf,
  type TimedRecord,
  takeInventory,
} from "./source.ts";

/** Values of an element between two records. */
interface ElementState {
  readonly block: Block;
  readonly version: number;
  readonly accumulated: number;
  readonly value: ElementValue;
  /** Sum of the gradients of the open step, or mean of the open round; 0 where nothing is added up. */
  readonly gradients: ElementValue;
}

/** Watches one element while its shard is folded, and reports each change. */
class ElementWatcher implements FoldVisitor {
  readonly #place: ElementPlace;
  readonly #generation: number;
  readonly #subjects: JobSubjects;
  readonly #onChange: (change: ElementChange) => void;
  #seen: ElementState | undefined;
  #shares: StepShare[] = [];

  /** `generation`: that of the records which it sees. */
  constructor(
    place: ElementPlace,
    generation: number,
    subjects: JobSubjects,
    onChange: (change: ElementChange) => void,
  ) {
    this.#place = place;
    this.#generation = generation;
    this.#subjects = subjects;
    this.#onChange = onChange;
  }

  /** The last value; undefined if the element is not there. */
  get value(): ElementValue | undefined {
    return this.#seen?.value;
  }

  /** Reads the element before the first record. */
  start(shard: Shard): void {
    this.#seen = this.#stateIn(shard);
  }

  after(record: TimedRecord, shard: Shard): void {
    const { parameter, index } = this.#place;
    const block = shard.block(parameter, index);
    const seen = this.#seen;
    const isSame =
      block === seen?.block &&
      block?.version === seen?.version &&
      block?.accumulated === seen?.accumulated;
    if (isSame) return;
    const now = this.#stateIn(shard);
    this.#seen = now;
    if (seen !== undefined && now?.block === seen.block && now.version === seen.version) {
      this.#noteShare(record, seen, now);
    } else if (!Object.is(now?.value, seen?.value)) {
      this.#onChange(this.#changeBy(record, shard, seen, now));
      this.#shares = [];
    } else {
      this.#shares = [];
    }
  }

  /** Notes how much a gradient added to the open step, or a contribution to the open round. */
  #noteShare(record: TimedRecord, seen: ElementState, now: ElementState): void {
    const trainer = this.#senderOf(record)?.trainer;
    if (trainer === undefined) return;
    this.#shares.push({ trainer, gradient: subtract(now.gradients, seen.gradients) });
  }

  #changeBy(
    record: TimedRecord,
    shard: Shard,
    seen: ElementState | undefined,
    now: ElementState | undefined,
  ): ElementChange {
    const { seq, timeMs } = record;
    const isStep = seen !== undefined && seen.accumulated > 0 && now?.accumulated === 0;
    const closed = isStep ? { step: closedIn(shard, seen.block), shares: this.#shares } : undefined;
    const [before, after] = [seen?.value, now?.value];
    return {
      shard: this.#place.shard,
      position: { generation: this.#generation, seq },
      timeMs,
      kind: kindOf(closed && shard.synchronization.mode, seen, now, ({ number }) =>
        this.#verbOf(record, number),
      ),
      sender: this.#senderOf(record),
      step: closed,
      before,
      after,
      change: before === undefined || after === undefined ? undefined : subtract(after, before),
    };
  }

  /** Returns what a trainer's record did to the element's block, which may be one of many in a batch. */
  #verbOf({ subject, payload }: TimedRecord, number: number): TrainerRecord["verb"] {
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed?.by === "trainer") return parsed.verb;
    const own = readBatch(payload)?.runs.find(({ numbers }) => numbers.includes(number));
    return own?.verb ?? "push";
  }

  #senderOf({ subject, payload }: TimedRecord): ElementChange["sender"] {
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed === undefined || parsed.by === "host") return undefined;
    const head = readRecordHeader(payload);
    return head && { trainer: parsed.trainer, session: head.session, n: head.n };
  }

  #stateIn(shard: Shard): ElementState | undefined {
    const { parameter, index, element } = this.#place;
    const block = shard.block(parameter, index);
    if (block === undefined) return undefined;
    const at = element - block.start;
    if (at < 0 || at >= block.count) return undefined;
    const { version, accumulated } = block;
    const { accumulator } = slotPlan(block, shard.synchronization);
    const gradients = accumulator === undefined ? 0 : elementOf(block, accumulator, at);
    return { block, version, accumulated, value: elementOf(block, 0, at), gradients };
  }
}

/** Returns the step, or the round of the block's fragment, that was closed last. */
function closedIn(shard: Shard, { config: { fragment } }: Block): number {
  if (fragment === undefined) return shard.steps.closed;
  return shard.fragmentVersion(fragment) ?? 0;
}

/** `closedIn`: how trainers are synchronized, if the record closed a step or round; else undefined. */
function kindOf(
  closedIn: Synchronization["mode"] | undefined,
  seen: ElementState | undefined,
  now: ElementState | undefined,
  verbOf: (block: Block) => TrainerRecord["verb"],
): ElementChange["kind"] {
  if (now === undefined) return "drop";
  if (seen === undefined || seen.block !== now.block) return "init";
  if (closedIn === undefined) return verbOf(now.block);
  return closedIn === "diloco" ? "round" : "step";
}

function elementOf(block: Block, slot: number, at: number): ElementValue {
  const dtype = slot === 0 ? block.dtype : computedAs(block.dtype);
  const { bytes } = DTYPES[dtype];
  const element = block.slotBytes(slot).subarray(at * bytes, (at + 1) * bytes);
  return toNumbers(dtype, viewElements(dtype, element))[0] ?? 0;
}

/** Subtracts two values of one type. */
function subtract(a: ElementValue, b: ElementValue): ElementValue {
  return typeof a === "bigint" && typeof b === "bigint" ? a - b : Number(a) - Number(b);
}

/** Options of {@link blameElement}. */
export interface BlameOptions {
  /** Cut after which changes are reported; by default all that are kept. */
  readonly since?: Cut | undefined;
  readonly until: Cut;
  readonly signal: AbortSignal;
  /** Called with each change, in order. */
  readonly onChange: (change: ElementChange) => void;
  readonly onProgress?: (doneRecords: number, totalRecords: number) => void;
}

/** Result of {@link blameElement}. */
export interface ElementBlame {
  readonly shard: number;
  readonly from: Position;
  readonly to: Position;
  /** Values at both ends; undefined if the element was not there. */
  readonly first: ElementValue | undefined;
  readonly last: ElementValue | undefined;
  readonly changes: number;
  /** Number of changes to or from values that are not finite; they are in no sum. */
  readonly nonFinite: number;
  /** Sum of the changes of each trainer, by id, without those of steps and rounds. */
  readonly trainers: ReadonlyMap<string, ChangeTotal>;
  /** Sum of the changes of each closed step or round. */
  readonly steps: ReadonlyMap<number, ChangeTotal>;
  /** Sum of all changes: last less first, unless the element was created, dropped or not finite in between. */
  readonly sum: ElementValue;
}

/**
 * Folds the shard of an element again and finds the records that changed it. In `sync` jobs a change is that of a
 * step, with what each trainer's gradient added to the sum.
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

/** Sums of changes. */
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

/** Adds two values; one that is the initial 0 takes the type of the other. */
function plus(a: ElementValue, b: ElementValue): ElementValue {
  if (typeof b === "bigint") return BigInt(a) + b;
  return Number(a) + b;
}

/** A value of an element; 64-bit integers are bigint. */
export type ElementValue = number | bigint;

/** A trainer's part of a step or round: what its gradient or contribution added to their sum or mean. */
interface StepShare {
  readonly trainer: string;
  readonly gradient: ElementValue;
}

/** A record after which an element had another value. */
export interface ElementChange {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
  /**
   * `step` or `round` if the record closed one, whose gradients or contributions were applied; `drop` if the parameter
   * was removed.
   */
  readonly kind: "init" | "push" | "set" | "step" | "round" | "drop";
  /** Sender of the record, with session and number; undefined for a host's. */
  readonly sender:
    | { readonly trainer: string; readonly session: number; readonly n: number }
    | undefined;
  /**
   * The step or round that closed, and what each of its trainers added to the sum of the element's gradients, or to the
   * weighted mean of its contributions.
   */
  readonly step: { readonly step: number; readonly shares: readonly StepShare[] } | undefined;
  /** Undefined if the element was not there. */
  readonly before: ElementValue | undefined;
  readonly after: ElementValue | undefined;
  /** After less before, where both are there. */
  readonly change: ElementValue | undefined;
}

/** Sum of the changes of one trainer, or of one step. */
export interface ChangeTotal {
  readonly changes: number;
  readonly sum: ElementValue;
}

/** An element as somebody names it. */
export interface ElementName {
  readonly parameter: string;
  readonly indices: readonly number[];
}

/** The place of an element. */
export interface ElementPlace extends ElementName {
  readonly shard: number;
  /** Number of its block. */
  readonly index: number;
  /** Its index in the parameter, in C order. */
  readonly element: number;
}

/**
 * Parses the name of an element, such as `w[3,4]` or, of a scalar, `s`.
 * @throws BAD_VALUE if the indices are not whole numbers.
 */
export function parseElement(text: string): ElementName {
  const match = /^(.+)\[([0-9, ]*)\]$/s.exec(text);
  if (match === null) return { parameter: text, indices: [] };
  const [, parameter = "", list = ""] = match;
  const indices = list.trim() === "" ? [] : list.split(",").map((each) => each.trim());
  if (indices.every((each) => /^\d{1,15}$/.test(each))) {
    return { parameter, indices: indices.map(Number) };
  }
  throw new PserverError(
    "BAD_VALUE",
    `element: expected PARAM[i,j], with an index for each dimension; received ${JSON.stringify(text)}`,
    { received: text },
  );
}

/**
 * Finds the block and the shard of an element, by the parameter's shape at a cut.
 * @throws UNKNOWN_PARAMETER if no such parameter was there, BAD_INDEX if it has no such element; as `replayShard`.
 */
export async function locateElement(
  source: HistorySource,
  cut: Cut,
  name: ElementName,
  signal: AbortSignal,
): Promise<ElementPlace> {
  const held = await locateParameter(source, cut, name.parameter, signal);
  const { header } = held;
  const element = placeOf(name, header.shape);
  const index = Math.floor(element / blockElements(header));
  // Consecutive blocks are in consecutive shards.
  const ahead = (((index - header.index) % source.shards) + source.shards) % source.shards;
  return { ...name, element, index, shard: (held.shard + ahead) % source.shards };
}

/** A block of a parameter, and the shard that holds it. */
export interface HeldBlock {
  readonly shard: number;
  readonly header: BlockHeader;
}

/**
 * Finds one of a parameter's blocks, and the shard that holds it, at a cut.
 * @throws UNKNOWN_PARAMETER if no such parameter was there; as `replayShard`.
 */
export async function locateParameter(
  source: HistorySource,
  cut: Cut,
  parameter: string,
  signal: AbortSignal,
): Promise<HeldBlock> {
  const held =
    (await findHeld(source, cut, (history, to) => ofSnapshot(history, to, parameter))) ??
    (await findHeld(source, cut, (history, to) =>
      ofReplay(history, to, parameter, source.job, signal),
    ));
  if (held === undefined) {
    const text = `no parameter ${quoteName(parameter)} existed at that point`;
    throw new PserverError("UNKNOWN_PARAMETER", text, { parameter });
  }
  return held;
}

/** Returns the first block that `look` finds in a shard. */
async function findHeld(
  source: HistorySource,
  cut: Cut,
  look: (history: ShardHistory, to: Position) => Promise<BlockHeader | undefined>,
): Promise<HeldBlock | undefined> {
  for (const [shard, to] of cut.entries()) {
    const header = await look(source.shard(shard), to);
    if (header !== undefined) return { shard, header };
  }
  return undefined;
}

/** Returns one of a parameter's blocks in the newest snapshot of a shard before a position; reads no values. */
async function ofSnapshot(
  history: ShardHistory,
  to: Position,
  parameter: string,
): Promise<BlockHeader | undefined> {
  const [base] = basesBefore(await takeInventory(history), to);
  if (base.snapshot === undefined) return undefined;
  const store = { read: (ref: PieceRef) => history.piece(ref) };
  const { fold } = await readSnapshotState(store, base.snapshot.manifest);
  return parseFoldState(fold).blocks.find((header) => header.parameter === parameter);
}

/** Returns one of a parameter's blocks in a shard as it was at a position. */
async function ofReplay(
  history: ShardHistory,
  to: Position,
  parameter: string,
  job: string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  const subjects = new JobSubjects(job);
  const shard = await replayShard(history, to, { subjects, signal });
  return shard.saveState().blocks.find((header) => header.parameter === parameter);
}

/** Returns the number of elements of every block of a parameter but the last, by one of its blocks. */
export function blockElements({ index, start, count }: BlockHeader): number {
  return index === 0 ? count : start / index;
}

/** Returns the index of an element in C order. @throws BAD_INDEX */
function placeOf({ parameter, indices }: ElementName, shape: readonly number[]): number {
  const isInside =
    indices.length === shape.length && indices.every((at, axis) => at < (shape[axis] ?? 0));
  if (isInside) return indices.reduce((place, at, axis) => place * (shape[axis] ?? 1) + at, 0);
  throw new PserverError(
    "BAD_INDEX",
    `${quoteName(parameter)} has shape [${shape}], ${elementCount(shape)} elements; received [${indices}]`,
    { parameter, expected: shape, received: indices },
  );
}
