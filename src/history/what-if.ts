import { entryBytes, entryGroups, entryPart, offsetsOf } from "../actors/fold/batch/run-change.ts";
import type { Block } from "../actors/fold/block-actor.ts";
import type { GuardPolicy } from "../actors/fold/guards/guard-table.ts";
import { LogSubjects, readable, readRecordMessage } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import type { GuardSetting } from "../protocol/config/index.ts";
import { bytesOf, type Dtype, type Encoding, isGrouped, isHalf } from "../protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../protocol/encoding/encoding.ts";
import {
  decodeGroups,
  encodeGroups,
  type GroupedBytes,
  splitGroups,
} from "../protocol/encoding/grouped.ts";
import { type NumericData, toNumbers } from "../protocol/encoding/half-floats.ts";
import {
  BATCH_ENTRIES_MAX,
  blockRows,
  draftBatch,
  encodedBytes,
  encodeHostRecord,
  encodeMessage,
  type Fields,
  type JobSubjects,
  type Message,
  type Position,
  parseBatch,
  parseHostRecord,
  parseRecordHeader,
  parseTrainerRecord,
  partElements,
  type ReceivedRun,
  sealMessage,
} from "../protocol/index.ts";
import type { LogSubject } from "../protocol/subjects.ts";
import { l2Norm } from "../protocol/tensor.ts";
import { viewElements } from "./compare-models.ts";
import { foldRecords, loadBase, type ReplayOptions } from "./replay/replay-shard.ts";
import { type ShardHistory, startOf, type TimedRecord, takeInventory } from "./source.ts";

/** Changes with which a history is folded: plain data, so that they can be passed to worker threads. */
export interface FoldChanges {
  /**
   * Trainers whose gradients, contributions, pushes and sets are left out; their inits and clocks stay, because others depend on
   * them.
   */
  readonly withoutTrainers: readonly string[];
  /** Records that are left out, each in one shard. */
  readonly withoutRecords: readonly (Position & { readonly shard: number })[];
  /** Replaces the learning rate of every gradient, whatever the parameter's configuration says. */
  readonly learningRate?: number | undefined;
  /** Gradients of a larger L2 norm are scaled down to it. */
  readonly clipNorm?: number | undefined;
  /** The guard of all parameters, in place of their own. Its histories begin with what the shard has of them. */
  readonly guard?: GuardSetting | undefined;
  /** Records that are applied as if no guard had objected, each in one shard. */
  readonly withoutGuard?: readonly (Position & { readonly shard: number })[];
}

/** Returns what changes mean for the guards of one shard, whose records are of this generation. */
function guardPolicyOf(
  { guard, withoutGuard = [] }: FoldChanges,
  shard: number,
  generation: number,
): GuardPolicy {
  const own = withoutGuard.filter((each) => each.shard === shard && each.generation === generation);
  return { guard, without: new Set(own.map(({ seq }) => seq)) };
}

/** Numbers of records that were left out, and that were changed. */
export interface ChangeCounts {
  readonly leftOut: number;
  readonly changed: number;
}

/** Elements of a gradient as a record has them: views of its bytes, which may begin anywhere. */
interface RecordElements {
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  readonly count: number;
  readonly bytes: Uint8Array;
  /** The scales of a grouped encoding, if they are not in the bytes before the codes. */
  readonly scales?: Uint8Array;
}

/** Returns the L2 norm of elements; 0 for integers. */
function normOf(elements: RecordElements): number {
  return l2Norm(readElements(elements));
}

/** Multiplies float elements by a factor, in place; half floats and encoded ones are rounded again. */
function scaleElements(elements: RecordElements, factor: number): void {
  const data = readElements(elements);
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return;
  for (let i = 0; i < data.length; i++) data[i] = (data[i] ?? 0) * factor;
  const { dtype, encoding, bytes } = elements;
  const form = encoding ?? (isHalf(dtype) ? dtype : undefined);
  if (form === undefined || data instanceof Float64Array) bytes.set(bytesOf(data));
  else if (isGrouped(form)) encodeGroups(form, [data.length], data, groupsOf(elements));
  else encodeElements(form, data, bytes);
}

/** Copies the elements, as numbers, into an array of the type that they are computed in. */
function readElements(elements: RecordElements): NumericData {
  const { dtype, encoding, count, bytes } = elements;
  if (encoding === undefined) return toNumbers(dtype, viewElements(dtype, new Uint8Array(bytes)));
  const floats = new Float32Array(count);
  if (isGrouped(encoding)) decodeGroups(encoding, [count], groupsOf(elements), floats);
  else decodeElements(encoding, bytes, floats);
  return floats;
}

function groupsOf({ count, bytes, scales }: RecordElements): GroupedBytes {
  return scales === undefined ? splitGroups(count, bytes) : { scales, codes: bytes };
}

/** Returns the elements of an entry of a run. */
function entryElements(run: ReceivedRun, place: number): RecordElements {
  const { dtype, encoding } = run;
  const count = run.counts[place] as number;
  if (isGrouped(encoding)) {
    const { scales, codes } = entryGroups(run, encoding, place);
    return { dtype, encoding, count, bytes: codes, scales };
  }
  const bytes = entryBytes({ ...run, encoding }, place, offsetsOf(run, place));
  return { dtype, encoding, count, bytes };
}

/** Subject of a record that may hold gradients, or what they have led to elsewhere. */
type UpdateSubject = Extract<LogSubject, { by: "trainer" | "batch" | "contribute" }>;

/** Changes records of one shard before they are folded. */
export class RecordEditor {
  readonly #changes: FoldChanges;
  readonly #subjects: LogSubjects;
  readonly #withoutTrainers: ReadonlySet<string>;
  readonly #withoutSeqs: ReadonlySet<number>;
  #leftOut = 0;
  #changed = 0;

  /** `generation`: that of the records which it gets. */
  constructor(changes: FoldChanges, subjects: JobSubjects, shard: number, generation: number) {
    this.#changes = changes;
    this.#subjects = new LogSubjects(subjects);
    this.#withoutTrainers = new Set(changes.withoutTrainers);
    const own = changes.withoutRecords.filter(
      (record) => record.shard === shard && record.generation === generation,
    );
    this.#withoutSeqs = new Set(own.map(({ seq }) => seq));
  }

  get counts(): ChangeCounts {
    return { leftOut: this.#leftOut, changed: this.#changed };
  }

  /**
   * Returns the record to fold in place of this one; undefined to leave it out. `shard`: the shard before the record.
   */
  edit(record: TimedRecord, shard: Shard): TimedRecord | undefined {
    const { parsed: subject } = this.#subjects.read(record.subject);
    if (subject?.by === "host" && subject.verb === "close") return editClose(record, shard);
    if (subject?.by !== "trainer" && subject?.by !== "batch" && subject?.by !== "contribute") {
      return record;
    }
    const message = readRecordMessage(record.payload);
    if (message === undefined) return record;
    if (this.#isLeftOut(record, subject, message)) {
      this.#leftOut += 1;
      return undefined;
    }
    const payload = readable(() => this.#editGradients(subject, message, shard));
    if (payload === undefined) return record;
    this.#changed += 1;
    return { ...record, payload };
  }

  #isLeftOut({ seq }: TimedRecord, subject: UpdateSubject, message: Message): boolean {
    if (this.#withoutSeqs.has(seq)) return true;
    return this.#withoutTrainers.has(subject.trainer) && !initializes(subject, message);
  }

  /** Returns the record with its gradients changed; undefined if none of them is. */
  #editGradients(
    subject: UpdateSubject,
    { fields, data }: Message,
    shard: Shard,
  ): Uint8Array | undefined {
    // A copy even of a Buffer, whose own `slice` shares memory.
    const copy: Message = { fields, data: new Uint8Array(data) };
    // A contribution is the result of many gradients, which took their rate and norms elsewhere.
    if (subject.by === "contribute") return undefined;
    if (subject.by === "batch") return this.#editBatch(copy, shard);
    const edited = this.#editPush(subject, copy, shard);
    return edited && encodeMessage(edited, copy.data);
  }

  #editPush(
    { verb, parameter, index }: Extract<LogSubject, { by: "trainer" }>,
    message: Message,
    shard: Shard,
  ): Fields | undefined {
    const { fields, data } = message;
    if (verb !== "push") return undefined;
    const record = parseTrainerRecord(verb, parseRecordHeader(fields), message);
    const block = shard.block(parameter, index);
    if (block === undefined || record.verb !== "push" || record.operation.op !== "grad") {
      return undefined;
    }
    const { dtype, encoding, part, norm } = record;
    const count = part === undefined ? block.count : partElements(part, blockRows(block));
    const size = encodedBytes(dtype, encoding, count);
    // The fold rejects a record with too few elements, with or without changes.
    if (data.length < size) return undefined;
    const bytes = data.subarray(data.length - size);
    const factor = this.#factor([{ dtype, encoding, count, bytes }], norm);
    const lr = takesRate(block) ? this.#changes.learningRate : undefined;
    if (factor === undefined && lr === undefined) return undefined;
    const clipped = factor === undefined || norm === undefined ? {} : { norm: norm * factor };
    return { ...fields, ...(lr === undefined ? {} : { lr }), ...clipped };
  }

  /** Returns the batch with its gradients changed; undefined if none of them is. */
  #editBatch(message: Message, shard: Shard): Uint8Array | undefined {
    const header = parseRecordHeader(message.fields);
    const { runs } = parseBatch(message, BATCH_ENTRIES_MAX);
    let isChanged = false;
    const edited = runs.flatMap((run) => {
      if (run.operation?.op !== "grad") return [run];
      const clipped = this.#clip(run, shard);
      const rated = this.#withRate(clipped, shard);
      isChanged ||= clipped !== run || rated[0] !== clipped;
      return rated;
    });
    if (!isChanged) return undefined;
    const { draft, values, scales } = draftBatch(header, edited);
    edited.forEach((run, i) => {
      values[i]?.set(run.values);
      scales[i]?.set(run.scales);
    });
    return sealMessage(draft);
  }

  /** Scales the gradients of a run whose norm is too large; returns the same run if there is none. */
  #clip(run: ReceivedRun, shard: Shard): ReceivedRun {
    const byParameter = new Map<string, number[]>();
    run.numbers.forEach((number, place) => {
      const block = shard.blockOfNumber(number);
      if (block === undefined) return;
      const places = byParameter.get(block.parameter);
      if (places === undefined) byParameter.set(block.parameter, [place]);
      else places.push(place);
    });
    const norms = run.norms?.slice();
    let isClipped = false;
    for (const places of byParameter.values()) {
      const elements = places.map((place) => entryElements(run, place));
      const factor = this.#factor(elements, norms?.[places[0] as number]);
      if (factor === undefined) continue;
      isClipped = true;
      for (const place of places) {
        if (norms !== undefined) norms[place] = (norms[place] as number) * factor;
      }
    }
    return isClipped ? { ...run, norms } : run;
  }

  /** Returns a run with the other learning rate, and apart from it the entries that take none. */
  #withRate(run: ReceivedRun, shard: Shard): ReceivedRun[] {
    const { learningRate: lr } = this.#changes;
    if (lr === undefined || run.operation?.op !== "grad") return [run];
    const rated = [...run.numbers.keys()].filter((place) => {
      const block = shard.blockOfNumber(run.numbers[place] as number);
      return block !== undefined && takesRate(block);
    });
    if (rated.length === 0) return [run];
    const others = [...run.numbers.keys()].filter((place) => !rated.includes(place));
    const operation = { ...run.operation, lr };
    const own = { ...selectEntries(run, rated), operation };
    return others.length === 0 ? [own] : [own, selectEntries(run, others)];
  }

  /**
   * Scales elements whose norm is too large; returns the factor. `norm`: that of the whole gradient, if it is known.
   */
  #factor(elements: readonly RecordElements[], known: number | undefined): number | undefined {
    const { clipNorm } = this.#changes;
    if (clipNorm === undefined) return undefined;
    const norm = known ?? Math.hypot(...elements.map(normOf));
    if (!(norm > clipNorm)) return undefined;
    const factor = clipNorm / norm;
    for (const each of elements) scaleElements(each, factor);
    return factor;
  }
}

/** Has a round close with those of its contributions that are there, so that later ones have the version they name. */
function editClose(record: TimedRecord, shard: Shard): TimedRecord {
  const message = readRecordMessage(record.payload);
  const close = message && readable(() => parseHostRecord("close", message));
  if (close?.verb !== "close") return record;
  const { round = [] } = shard.fragments.get(close.fragment) ?? {};
  if (round.length >= close.contributions) return record;
  return { ...record, payload: encodeHostRecord({ ...close, contributions: round.length }) };
}

/** Whether gradients of a block take a learning rate: without an optimizer they do not. */
function takesRate({ config }: Block): boolean {
  return config.optimizer.name !== "none";
}

const NO_BYTES = new Uint8Array(0);

/** Returns a run of some of the entries of another one. */
function selectEntries(run: ReceivedRun, places: readonly number[]): ReceivedRun {
  const at = places.map((place) => ({ place, offsets: offsetsOf(run, place) }));
  const elements = places.map((place) => entryElements(run, place));
  const values = Buffer.concat(elements.map(({ bytes }) => bytes));
  const scales = Buffer.concat(elements.map(({ scales: own }) => own ?? NO_BYTES));
  const pick = <Column extends Uint32Array | Float64Array>(column: Column): Column =>
    column.filter((_value: number, place: number) => places.includes(place)) as Column;
  const counts = pick(run.counts);
  const parts = at.map(({ place, offsets }) => entryPart(run, place, offsets));
  const lists = (list: "rows" | "inner"): Uint32Array =>
    Uint32Array.from(parts.flatMap((part) => [...(part?.[list] ?? [])]));
  return {
    ...run,
    ...{ numbers: pick(run.numbers), counts, scales, values },
    elements: counts.reduce((sum, count) => sum + count, 0),
    parts: run.parts && {
      ...{ rows: pick(run.parts.rows), rowList: lists("rows") },
      inner: run.parts.inner && pick(run.parts.inner),
      innerList: run.parts.innerList && lists("inner"),
    },
    norms: run.norms && pick(run.norms),
    seen: run.seen && pick(run.seen),
  };
}

/** Whether a record creates blocks, without which later ones mean nothing. */
function initializes(subject: UpdateSubject, message: Message): boolean {
  if (subject.by === "trainer") return subject.verb === "init";
  if (subject.by === "contribute") return false;
  const batch = readable(() => parseBatch(message, BATCH_ENTRIES_MAX));
  return batch?.runs.some(({ verb }) => verb === "init") ?? false;
}

/** Options of {@link foldWhatIf}. */
export interface WhatIfOptions extends ReplayOptions {
  readonly changes: FoldChanges;
  /** Records up to this position are folded as they are; by default none. */
  readonly from?: Position | undefined;
}

/**
 * Rebuilds a shard as it would have been at a position if the records had been others, beginning with what
 * it was at `from`. Gradients stay those that trainers computed from the values that they really had.
 * @throws as `replayShard`.
 */
export async function foldWhatIf(
  history: ShardHistory,
  to: Position,
  options: WhatIfOptions,
): Promise<{ shard: Shard; counts: ChangeCounts }> {
  const { subjects, changes, signal, onProgress } = options;
  const { generation } = to;
  const from = options.from ?? startOf(await takeInventory(history), to);
  // If it is of an older generation than the end, all of the end's generation is folded with changes.
  const start = from.generation === generation ? from : { generation, seq: 0 };
  const shard = await loadBase(history, start, options);
  const baseSeq = shard.seq;
  const onFolded = (seq: number): void => onProgress?.(seq - baseSeq, to.seq - baseSeq);
  await foldRecords(shard, history, start, { signal, onFolded });
  // The records from here on are not those that were folded before.
  shard.expect([]);
  const editor = new RecordEditor(changes, subjects, history.shard, generation);
  shard.guardPolicy = guardPolicyOf(changes, history.shard, generation);
  await foldRecords(shard, history, to, {
    signal,
    onFolded,
    edit: (record) => editor.edit(record, shard),
  });
  return { shard, counts: editor.counts };
}
