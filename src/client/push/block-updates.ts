import { type Allocate, packValue, sealMessage } from "../../protocol/codec.ts";
import { bytesOf, DTYPES, type TensorData } from "../../protocol/dtypes.ts";
import { encodeElements } from "../../protocol/encoding/elements.ts";
import { type Encoding, encodedBytes } from "../../protocol/encoding/encodings.ts";
import { type BlockPlace, blockPlaces } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  packedIndexBytes,
  partCounts,
  partIndexBytes,
  writePackedIndex,
  writePartIndex,
} from "../../protocol/parts.ts";
import {
  draftRecord,
  type PushOperation,
  type RecordHead,
  type TrainerRecord,
} from "../../protocol/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { gatherPart, type PartSlice } from "../parts/part-values.ts";
import type { EntrySource, Topic, UpdateSource } from "../shell/update-source.ts";

/** Who sends the records. */
interface Sender {
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** Settings of the push of one parameter. */
export interface Push {
  /** L2 norm of all elements of the parameter that the call sends, as encoded, if it is needed. */
  readonly norm?: number;
  readonly encoding?: Encoding;
  /** The operation on the block with this index; called when the message is made. */
  readonly operation: (block: number, namesVersion: boolean) => PushOperation;
  /** Whether the operation of a block can name the version that a gradient was made from. */
  readonly namesVersion?: (block: number) => boolean;
}

/** What all messages of one tensor share. */
interface Source {
  readonly sender: Sender;
  readonly info: ParameterInfo;
  readonly verb: TrainerRecord["verb"];
  readonly encoding?: Encoding | undefined;
  readonly toRecord: (head: RecordHead, load: Load, namesVersion: boolean) => TrainerRecord;
  readonly namesVersion?: Push["namesVersion"];
}

/** Elements that go to one block in one message. */
interface Load {
  readonly place: BlockPlace;
  readonly index?: PartIndex | undefined;
  readonly elements: number;
  /** Returns the elements when the message is made: waiting updates hold no copy. */
  readonly values: () => TensorData;
}

/** Records that initialize every block of a parameter. */
export function initUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[] {
  const { epoch, dtype, shape, config } = info;
  const toRecord = (head: RecordHead, { place }: Load): TrainerRecord => {
    const { start, count } = place;
    return { verb: "init", ...head, epoch, dtype, shape, start, count, config };
  };
  return wholeBlocks({ sender, info, verb: "init", toRecord }, tensor.data);
}

/** Records that overwrite every block of a parameter. */
export function setUpdates(sender: Sender, info: ParameterInfo, tensor: Tensor): UpdateSource[] {
  const { epoch, dtype } = info;
  const toRecord = (head: RecordHead): TrainerRecord => ({ verb: "set", ...head, epoch, dtype });
  return wholeBlocks({ sender, info, verb: "set", toRecord }, tensor.data);
}

/** Records that update every block of a parameter. */
export function pushUpdates(
  sender: Sender,
  info: ParameterInfo,
  data: TensorData,
  push: Push,
): UpdateSource[] {
  return wholeBlocks(pushSource(sender, info, push), data);
}

/** Records that update parts of blocks with the elements that `data` has for them. */
export function partUpdates(
  sender: Sender,
  info: ParameterInfo,
  slices: readonly PartSlice[],
  data: TensorData,
  push: Push,
): UpdateSource[] {
  const source = pushSource(sender, info, push);
  return slices.map((slice) => {
    const { index, elements, part } = slice;
    const values = (): TensorData => gatherPart(slice, data);
    return new TensorUpdate(source, { place: part.place, index, elements, values });
  });
}

function pushSource(sender: Sender, info: ParameterInfo, push: Push): Source {
  const { epoch, dtype } = info;
  const { norm, encoding, operation, namesVersion } = push;
  // Written out: spreading the head takes as long as everything else here.
  const toRecord = (head: RecordHead, { place, index }: Load, isNamed: boolean): TrainerRecord => ({
    verb: "push",
    session: head.session,
    n: head.n,
    done: head.done,
    reply: head.reply,
    epoch,
    dtype,
    norm,
    encoding,
    operation: operation(place.index, isNamed),
    part: index && partCounts(index),
  });
  return { sender, info, verb: "push", encoding, toRecord, ...(namesVersion && { namesVersion }) };
}

function wholeBlocks(source: Source, data: TensorData): UpdateSource[] {
  return blockPlaces(source.info.layout).map((place) => {
    const { start, count } = place;
    const values = (): TensorData => data.subarray(start, start + count);
    return new TensorUpdate(source, { place, elements: count, values });
  });
}

/** At most as many bytes as a group of a batch takes in the header besides its parameter's name. */
const GROUP_BYTES_MAX = 160;

class TensorUpdate implements UpdateSource, EntrySource {
  readonly shard: number;
  readonly parameter: string;
  readonly index: number;
  readonly blocks = 1;
  readonly dataBytes: number;
  readonly entryBytes: number;
  readonly #source: Source;
  readonly #load: Load;

  constructor(source: Source, load: Load) {
    const { info, encoding } = source;
    const { place, index, elements } = load;
    this.#source = source;
    this.#load = load;
    this.shard = place.shard;
    this.parameter = info.name;
    this.index = place.index;
    const elementBytes = encodedBytes(info.dtype, encoding, elements);
    const counts = index && partCounts(index);
    this.dataBytes = elementBytes + (counts ? partIndexBytes(counts) : 0);
    this.entryBytes = elementBytes + (counts ? packedIndexBytes(counts, this.#rows()) : 0);
  }

  get subject(): string {
    const { sender, verb } = this.#source;
    return sender.subjects.log(this.shard, sender.trainer, verb, this.parameter, this.index);
  }

  get topic(): Topic {
    return { kind: "blocks", blocks: [this] };
  }

  get entry(): EntrySource {
    return this;
  }

  get isFloat(): boolean {
    return DTYPES[this.#source.info.dtype].float;
  }

  get groupBytesMax(): number {
    const { verb, info } = this.#source;
    const { shape, config } = info;
    const declared = verb === "init" ? packValue({ shape, config }).length : 0;
    // A character takes up to three bytes.
    return GROUP_BYTES_MAX + declared + 3 * this.parameter.length;
  }

  /** Asked when the update is sent: its step, which decides, is not known before. */
  get namesVersion(): boolean {
    return this.#source.namesVersion?.(this.index) ?? false;
  }

  record(head: RecordHead, namesVersion: boolean): TrainerRecord {
    return this.#source.toRecord(head, this.#load, namesVersion);
  }

  draft(head: RecordHead, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const { index } = this.#load;
    const draft = draftRecord(this.record(head, namesVersion), this.dataBytes, allocate);
    const indexBytes = index === undefined ? 0 : writePartIndex(draft.data, index);
    this.#writeElements(draft.data.subarray(indexBytes));
    return sealMessage(draft);
  }

  writeEntry(target: Uint8Array): void {
    const { index } = this.#load;
    const indexBytes = index === undefined ? 0 : writePackedIndex(target, index, this.#rows());
    this.#writeElements(target.subarray(indexBytes));
  }

  #writeElements(target: Uint8Array): void {
    const { encoding } = this.#source;
    const values = this.#load.values();
    if (encoding === undefined) target.set(bytesOf(values));
    else if (values instanceof Float32Array) encodeElements(encoding, values, target);
  }

  /** Division of its block into rows. */
  #rows(): BlockRows {
    const { start, count } = this.#load.place;
    return blockRows({ shape: this.#source.info.shape, start, count });
  }
}
