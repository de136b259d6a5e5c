import { LogSubjects, readable, readRecordMessage } from "../actors/fold/journal-record.ts";
import type { Shard } from "../actors/fold/shard.ts";
import type { Dtype, Encoding } from "../protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../protocol/encoding/encoding.ts";
import {
  asMap,
  BATCH_ENTRIES_MAX,
  type BatchEntry,
  blockRows,
  encodedBytes,
  encodeMessage,
  type Fields,
  GROUPS_KEY,
  type JobSubjects,
  type Message,
  type Position,
  parseBatch,
  parseRecordHeader,
  parseTrainerRecord,
  partElements,
  valuesField,
} from "../protocol/index.ts";
import type { LogSubject } from "../protocol/subjects.ts";
import { l2Norm } from "../protocol/tensor.ts";
import { viewElements } from "./compare-models.ts";
import { foldRecords, loadBase, type ReplayOptions } from "./replay/replay-shard.ts";
import { type ShardHistory, startOf, type TimedRecord, takeInventory } from "./source.ts";

/** Changes with which a history is folded: plain data, so that they can be passed to worker threads. */
export interface FoldChanges {
  /**
   * Trainers whose gradients, pushes and sets are left out; their inits and clocks stay, because others depend on
   * them.
   */
  readonly withoutTrainers: readonly string[];
  /** Records that are left out, each in one shard. */
  readonly withoutRecords: readonly (Position & { readonly shard: number })[];
  /** Replaces the learning rate of every gradient, whatever the parameter's configuration says. */
  readonly learningRate?: number | undefined;
  /** Gradients of a larger L2 norm are scaled down to it. */
  readonly clipNorm?: number | undefined;
}

/** Numbers of records that were left out, and that were changed. */
export interface ChangeCounts {
  readonly leftOut: number;
  readonly changed: number;
}

/** Elements of a gradient as a record has them: a view of its bytes, which may begin anywhere. */
interface RecordElements {
  readonly dtype: Dtype;
  readonly encoding: Encoding | undefined;
  readonly bytes: Uint8Array;
}

/** Returns the L2 norm of elements; 0 for integers. */
function normOf(elements: RecordElements): number {
  return l2Norm(readElements(elements));
}

/** Multiplies float elements by a factor, in place; encoded ones are rounded again. */
function scaleElements(elements: RecordElements, factor: number): void {
  const data = readElements(elements);
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return;
  for (let i = 0; i < data.length; i++) data[i] = (data[i] ?? 0) * factor;
  const { encoding, bytes } = elements;
  if (encoding !== undefined && data instanceof Float32Array) encodeElements(encoding, data, bytes);
  else bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

/** Copies the elements into an array of their type. */
function readElements({ dtype, encoding, bytes }: RecordElements) {
  if (encoding === undefined) return viewElements(dtype, new Uint8Array(bytes));
  const floats = new Float32Array(bytes.length / 2);
  decodeElements(encoding, bytes, floats);
  return floats;
}

/** Subject of a record that may hold gradients. */
type UpdateSubject = Extract<LogSubject, { by: "trainer" | "batch" }>;

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
    if (subject?.by !== "trainer" && subject?.by !== "batch") return record;
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
    const edited =
      subject.by === "batch" ? this.#editBatch(copy, shard) : this.#editPush(subject, copy, shard);
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
    const changed = this.#editEntries(fields, [{ parameter, index, record, data }], shard);
    return changed && { ...fields, ...changed };
  }

  #editBatch(message: Message, shard: Shard): Fields | undefined {
    const { fields } = message;
    const entries = parseBatch(parseRecordHeader(fields), message, BATCH_ENTRIES_MAX);
    let isChanged = false;
    const groups = [...valuesField(fields, GROUPS_KEY, BATCH_ENTRIES_MAX)].map((value) => {
      const group = asMap(value, "group");
      const own = entries.filter(({ parameter }) => parameter === group["parameter"]);
      const changed = this.#editEntries(group, own, shard);
      isChanged ||= changed !== undefined;
      return { ...group, ...changed };
    });
    return isChanged ? { ...fields, groups } : undefined;
  }

  /** Returns the changes of the fields that block updates of one parameter share; scales their elements. */
  #editEntries(fields: Fields, entries: readonly BatchEntry[], shard: Shard): Fields | undefined {
    if (fields["op"] !== "grad") return undefined;
    const [first] = entries;
    const block = first && shard.block(first.parameter, first.index);
    if (block === undefined) return undefined;
    const { learningRate } = this.#changes;
    // A parameter without an optimizer takes no learning rate.
    const takesRate = block.config.optimizer.name !== "none";
    const rate = learningRate !== undefined && takesRate ? { lr: learningRate } : undefined;
    const norm = this.#clip(fields, entries, shard);
    return rate === undefined && norm === undefined ? undefined : { ...rate, ...norm };
  }

  /** Scales the elements if their norm is too large, and returns the changes of the fields. */
  #clip(fields: Fields, entries: readonly BatchEntry[], shard: Shard): Fields | undefined {
    const { clipNorm } = this.#changes;
    if (clipNorm === undefined) return undefined;
    const elements = entries.flatMap((entry) => elementsOf(entry, shard) ?? []);
    const storedNorm = fields["norm"];
    const norm = typeof storedNorm === "number" ? storedNorm : Math.hypot(...elements.map(normOf));
    if (!(norm > clipNorm)) return undefined;
    const factor = clipNorm / norm;
    for (const each of elements) scaleElements(each, factor);
    return typeof storedNorm === "number" ? { norm: norm * factor } : {};
  }
}

/** Whether a record creates blocks, without which later ones mean nothing. */
function initializes(subject: UpdateSubject, { fields }: Message): boolean {
  if (subject.by === "trainer") return subject.verb === "init";
  const groups = readable(() => [...valuesField(fields, GROUPS_KEY, BATCH_ENTRIES_MAX)]) ?? [];
  return groups.some((group) => (group as Fields | null)?.["verb"] === "init");
}

/** Returns the elements of a block update, without the index of a part; undefined if its block is not there. */
function elementsOf(
  { parameter, index, record, data }: BatchEntry,
  shard: Shard,
): RecordElements | undefined {
  const block = shard.block(parameter, index);
  if (block === undefined || record.verb !== "push") return undefined;
  const { dtype, encoding, part } = record;
  const count = part === undefined ? block.count : partElements(part, blockRows(block));
  const bytes = data.subarray(data.length - encodedBytes(dtype, encoding, count));
  return { dtype, encoding, bytes };
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
  await foldRecords(shard, history, to, {
    signal,
    onFolded,
    edit: (record) => editor.edit(record, shard),
  });
  return { shard, counts: editor.counts };
}
