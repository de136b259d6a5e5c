import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import {
  DTYPES,
  type Dtype,
  type Encoding,
  encodedBytes,
  isGrouped,
  type TensorData,
  viewData,
} from "../../protocol/dtypes.ts";
import { encodeGroups, type GroupedBytes } from "../../protocol/encoding/grouped.ts";
import { type BlockPlace, blockPlace, shardOfBlock } from "../../protocol/layout.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
} from "../../protocol/limits.ts";
import { type BatchRun, draftBatch } from "../../protocol/messages/batch-records.ts";
import { joinNumbers, type PartColumns } from "../../protocol/messages/columns.ts";
import { type Contribution, draftContribution } from "../../protocol/messages/contributions.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import type { RecordHeader } from "../../protocol/messages/records.ts";
import type { Topic, UpdateSource } from "../io/update-sender.ts";
import { gatherPart, type PartSlice } from "../part-plan.ts";
import { slicePlace, type UpdatePlace } from "./rounding-errors.ts";
import {
  type BlockElements,
  hasFloats,
  operationOf,
  type Sender,
  TensorUpdate,
  type UpdateKind,
  writeElements,
} from "./tensor-update.ts";

/** What an entry is: a whole block, some rows of it, or some elements of some rows. */
type EntryForm = "whole" | "rows" | "elements";

/** The entries of one run of a batch, in columns. */
class RunColumns {
  readonly dtype: Dtype;
  readonly form: EntryForm;
  readonly encoding: Encoding | undefined;
  readonly infos: ParameterInfo[] = [];
  readonly numbers: number[] = [];
  readonly counts: number[] = [];
  readonly data: TensorData[] = [];
  /** Of whole blocks: their first element in `data`. */
  readonly starts: number[] = [];
  /** What an entry has of `data`; absent for all elements of the block from its start on. */
  readonly slices: PartSlice[] = [];
  readonly norms: number[] = [];
  readonly seen: number[] = [];
  elements = 0;
  hasNorms = false;
  hasSeen = false;

  constructor(dtype: Dtype, form: EntryForm, encoding: Encoding | undefined) {
    this.dtype = dtype;
    this.form = form;
    this.encoding = encoding;
  }

  /** Adds an entry; the caller adds where its elements are. */
  add(
    info: ParameterInfo,
    index: number,
    count: number,
    data: TensorData,
    norm: number | undefined,
    seen: number,
  ): void {
    this.infos.push(info);
    this.numbers.push(info.firstNumber + index);
    this.counts.push(count);
    this.data.push(data);
    this.norms.push(norm ?? 0);
    this.seen.push(seen);
    this.elements += count;
    this.hasNorms ||= norm !== undefined;
    this.hasSeen ||= seen > 0;
  }

  /** The parts of the entries, as a message has them. */
  parts(): PartColumns | undefined {
    if (this.form === "whole") return undefined;
    const rows = this.slices.map(({ index }) => index?.rows ?? NO_NUMBERS);
    const columns = { rows: lengthsOf(rows), rowList: joinNumbers(rows) };
    if (this.form === "rows") return { ...columns, inner: undefined, innerList: undefined };
    const inner = this.slices.map(({ index }) => index?.inner ?? NO_NUMBERS);
    return { ...columns, inner: lengthsOf(inner), innerList: joinNumbers(inner) };
  }

  /** Copies the elements of all entries, one after the other, into an array of their type. */
  gather(into: TensorData): void {
    let at = 0;
    for (let i = 0; i < this.numbers.length; i++) {
      const own = this.#elementsOf(i);
      // All are of the type of the run.
      (into as Float32Array).set(own as Float32Array, at);
      at += own.length;
    }
  }

  /** Returns where the elements of all entries lie in their parameters. */
  places(): UpdatePlace[] {
    return this.infos.map((info, i) => {
      const elements = this.counts[i] as number;
      const slice = this.slices[i];
      if (slice !== undefined) return slicePlace(info, slice);
      const start = this.starts[i] as number;
      return { info, start, count: elements, rows: undefined, elements };
    });
  }

  #elementsOf(i: number): TensorData {
    const data = this.data[i] as TensorData;
    const slice = this.slices[i];
    if (slice !== undefined) return gatherPart(slice, data);
    const start = this.starts[i] as number;
    const count = this.counts[i] as number;
    return start === 0 && count === data.length ? data : data.subarray(start, start + count);
  }
}

const NO_NUMBERS = new Uint32Array(0);

function lengthsOf(lists: readonly Uint32Array[]): Uint32Array {
  return Uint32Array.from(lists, (list) => list.length);
}

/** Memory in which the elements of a run are put together before they are written; used within one call. */
let staging = new ArrayBuffer(BATCH_BYTES);

function stagingFor(dtype: Dtype, elements: number): TensorData {
  const bytes = elements * DTYPES[dtype].bytes;
  if (bytes > staging.byteLength) staging = new ArrayBuffer(bytes);
  return viewData(dtype, staging, elements);
}

/** Which part of a contribution a record is. */
type PartNumber = Pick<Contribution, "part" | "parts">;

/** Updates of several blocks of one shard that go in one record. */
class BatchUpdate implements UpdateSource {
  readonly subject: string;
  readonly shard: number;
  readonly blocks: number;
  readonly dataBytes: number;
  readonly #kind: UpdateKind;
  readonly #runs: readonly RunColumns[];
  readonly #part: PartNumber | undefined;
  /** What the runs had in the first message, if they were encoded with their errors: these count once. */
  readonly #encoded: (GroupedBytes | undefined)[] = [];

  /** `subject` is that of the sender's batches in the shard, or of its contributions for a part of one. */
  constructor(subject: string, kind: UpdateKind, batch: OpenBatch, part?: PartNumber) {
    this.subject = subject;
    this.shard = batch.shard;
    this.blocks = batch.entries;
    this.dataBytes = batch.valueBytes + batch.entries * COLUMN_BYTES;
    this.#kind = kind;
    this.#runs = batch.runs;
    this.#part = part;
  }

  get topic(): Topic {
    const blocks = this.#runs.flatMap(({ infos, numbers }) =>
      infos.map(({ name, firstNumber }, i) => {
        return { parameter: name, index: (numbers[i] as number) - firstNumber };
      }),
    );
    return { kind: "blocks", blocks };
  }

  get namesVersion(): boolean {
    return this.#kind.step?.() === undefined && this.#runs.some(({ hasSeen }) => hasSeen);
  }

  draft(header: RecordHeader, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const { verb, contribution } = this.#kind;
    const operation = operationOf(this.#kind, 0);
    const runs = this.#runs.map((run): BatchRun => {
      const { dtype, encoding, numbers, counts, norms, seen, hasNorms, hasSeen } = run;
      return {
        ...{ verb, dtype, encoding, operation },
        numbers: Uint32Array.from(numbers),
        counts: Uint32Array.from(counts),
        parts: run.parts(),
        norms: hasNorms ? Float64Array.from(norms) : undefined,
        seen: namesVersion && hasSeen ? Float64Array.from(seen) : undefined,
      };
    });
    const { draft, values, scales } =
      contribution === undefined || this.#part === undefined
        ? draftBatch(header, runs, allocate)
        : draftContribution(header, { ...contribution, ...this.#part }, runs, allocate);
    for (let i = 0; i < runs.length; i++) {
      this.#write(i, { scales: scales[i] as Uint8Array, codes: values[i] as Uint8Array });
    }
    return sealMessage(draft);
  }

  /** Writes the values of a run, and the scales that a grouped encoding has. */
  #write(place: number, to: GroupedBytes): void {
    const { errors } = this.#kind;
    const run = this.#runs[place] as RunColumns;
    const { encoding } = run;
    const before = this.#encoded[place];
    if (before !== undefined) {
      to.scales.set(before.scales);
      to.codes.set(before.codes);
      return;
    }
    const elements = stagingFor(run.dtype, run.elements);
    run.gather(elements);
    if (!isGrouped(encoding) || !(elements instanceof Float32Array)) {
      writeElements(encoding, elements, to.codes);
    } else if (errors === undefined) {
      encodeGroups(encoding, run.counts, elements, to);
    } else {
      errors.encode(encoding, run.places(), elements, to);
      this.#encoded[place] = { scales: to.scales.slice(), codes: to.codes.slice() };
    }
  }
}

/** Most bytes of an entry in the columns of a batch: its number and count, norm, version, and lengths of lists. */
const COLUMN_BYTES = 32;

/** A batch that is being filled. */
interface OpenBatch {
  readonly shard: number;
  /** Place of its first update in the result. */
  readonly place: number;
  readonly runs: RunColumns[];
  entries: number;
  /** Bytes of values and lists. */
  valueBytes: number;
}

/** Dependencies and limits of {@link UpdateCollector}. */
export interface CollectorOptions {
  readonly sender: Sender;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: number;
  /** Whether gradients of integers, which do not wait for a step, have other batches than those of floats. */
  readonly separatesIntegers: boolean;
  /** Whether each update has a record of its own. */
  readonly isSingle?: boolean;
}

/**
 * Collects the updates of one call. The small ones of each shard go into as few records as the limits of batches
 * admit; a large update has a record of its own, as does a small one without another. Within a shard the small ones of
 * one element type stay in order, and so do the large ones.
 */
export class UpdateCollector {
  readonly #kind: UpdateKind;
  readonly #options: CollectorOptions;
  readonly #records: (UpdateSource | OpenBatch)[] = [];
  readonly #open = new Map<number, OpenBatch>();

  constructor(kind: UpdateKind, options: CollectorOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /**
   * Adds an update of a whole block with the elements of the parameter, of which `data` has all. `encoding`: that of
   * this update, if it is an entry of a batch; by default that of the call.
   */
  addBlock(
    info: ParameterInfo,
    index: number,
    data: TensorData,
    norm?: number,
    seen = 0,
    { encoding }: Pick<UpdateKind, "encoding"> = this.#kind,
  ): void {
    const { layout } = info;
    const start = index * layout.blockElements;
    const count = Math.min(layout.blockElements, layout.elements - start);
    const bytes = encodedBytes(info.dtype, encoding, count);
    const shard = shardOfBlock(layout, index);
    const run = this.#runFor(info, { shard, index }, { form: "whole", encoding }, bytes);
    if (run === undefined) {
      const place = blockPlace(layout, index);
      this.#addSingle({ info, place, data, norm, seen });
    } else {
      run.starts[run.numbers.length] = start;
      run.add(info, index, count, data, norm, seen);
    }
  }

  /** Adds an update of a part of a block, or of all of it, with the elements that `data` has for it. */
  addSlice(info: ParameterInfo, slice: PartSlice, data: TensorData, norm?: number, seen = 0): void {
    const { place } = slice.part;
    const { index, elements } = slice;
    const lists = (index?.rows.length ?? 0) + (index?.inner?.length ?? 0);
    const { encoding } = this.#kind;
    const bytes = encodedBytes(info.dtype, encoding, elements) + lists * UINT32_BYTES;
    const run = this.#runFor(info, place, { form: formOf(slice), encoding }, bytes);
    if (run === undefined) {
      this.#addSingle({ info, place, data, slice, norm, seen });
    } else {
      run.slices[run.numbers.length] = slice;
      run.add(info, place.index, elements, data, norm, seen);
    }
  }

  /** Returns the records, in the order of their first updates. */
  finish(): UpdateSource[] {
    const { length: parts } = this.#records;
    return this.#records.map((record, part) => {
      if (!("runs" in record)) return record;
      if (this.#kind.contribution !== undefined) {
        const { subjects, trainer } = this.#options.sender;
        const subject = subjects.contribute(record.shard, trainer);
        return new BatchUpdate(subject, this.#kind, record, { part, parts });
      }
      if (record.entries === 1) return this.#single(record.runs[0] as RunColumns);
      const { subjects, trainer } = this.#options.sender;
      return new BatchUpdate(subjects.batch(record.shard, trainer), this.#kind, record);
    });
  }

  #addSingle(elements: BlockElements): void {
    this.#records.push(new TensorUpdate(this.#options.sender, this.#kind, elements));
  }

  /** Makes the record of the only entry of a run. */
  #single({ infos, numbers, data, slices, norms, hasNorms, seen }: RunColumns): UpdateSource {
    const info = infos[0] as ParameterInfo;
    return new TensorUpdate(this.#options.sender, this.#kind, {
      info,
      place: blockPlace(info.layout, (numbers[0] as number) - info.firstNumber),
      data: data[0] as TensorData,
      slice: slices[0],
      norm: hasNorms ? norms[0] : undefined,
      seen: seen[0] as number,
    });
  }

  /** Returns the run that takes an update of so many bytes; undefined if it has a record of its own. */
  #runFor(
    info: ParameterInfo,
    { shard, index }: Pick<BlockPlace, "shard" | "index">,
    { form, encoding }: Pick<RunColumns, "form" | "encoding">,
    bytes: number,
  ): RunColumns | undefined {
    const { isSingle = false, separatesIntegers } = this.#options;
    const isAlone = isSingle || bytes >= BATCH_ENTRY_BYTES_MAX;
    if (isAlone && this.#kind.contribution === undefined) return undefined;
    const key = 2 * shard + (separatesIntegers && !hasFloats(info) ? 1 : 0);
    let batch = this.#open.get(key);
    if (batch === undefined || !this.#admits(batch, info.firstNumber + index, bytes)) {
      batch = { shard, place: this.#records.length, runs: [], entries: 0, valueBytes: 0 };
      this.#open.set(key, batch);
      this.#records.push(batch);
    }
    batch.entries += 1;
    batch.valueBytes += bytes;
    const { dtype } = info;
    const last = batch.runs.find(
      (run) => run.dtype === dtype && run.form === form && run.encoding === encoding,
    );
    if (last !== undefined) return last;
    const run = new RunColumns(dtype, form, encoding);
    batch.runs.push(run);
    return run;
  }

  #admits({ entries, valueBytes, runs }: OpenBatch, number: number, bytes: number): boolean {
    const all = valueBytes + bytes;
    if (entries === BATCH_ENTRIES_MAX || all > BATCH_BYTES) return false;
    const messageBytes = BATCH_HEAD_BYTES_MAX + (entries + 1) * COLUMN_BYTES + all;
    if (messageBytes > this.#options.payloadBytesMax) return false;
    // Several slices of one block follow each other.
    return !runs.some((run) => run.numbers.at(-1) === number);
  }
}

const UINT32_BYTES = 4;

function formOf({ index }: PartSlice): EntryForm {
  if (index === undefined) return "whole";
  return index.inner === undefined ? "rows" : "elements";
}
