import { type Allocate, sealMessage } from "../../protocol/codec.ts";
import { bytesOf, type TensorData } from "../../protocol/dtypes.ts";
import { encodeElements } from "../../protocol/encoding/elements.ts";
import { type Encoding, encodedBytes } from "../../protocol/encoding/encodings.ts";
import { type BlockPlace, blockPlaces } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import {
  type PartIndex,
  partCounts,
  partIndexBytes,
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
import type { Topic, UpdateSource } from "../shell/update-source.ts";

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

class TensorUpdate implements UpdateSource {
  readonly subject: string;
  readonly shard: number;
  readonly topic: Topic;
  readonly dataBytes: number;
  readonly namesVersion: boolean;
  readonly #source: Source;
  readonly #load: Load;
  readonly #indexBytes: number;

  constructor(source: Source, load: Load) {
    const { sender, info, verb, encoding } = source;
    const { place, index, elements } = load;
    this.#source = source;
    this.#load = load;
    this.#indexBytes = index === undefined ? 0 : partIndexBytes(partCounts(index));
    this.subject = sender.subjects.log(place.shard, sender.trainer, verb, info.name, place.index);
    this.shard = place.shard;
    this.namesVersion = source.namesVersion?.(place.index) ?? false;
    this.topic = { kind: "block", parameter: info.name, index: place.index };
    this.dataBytes = this.#indexBytes + encodedBytes(info.dtype, encoding, elements);
  }

  draft(head: RecordHead, namesVersion: boolean, allocate?: Allocate): Uint8Array {
    const { encoding, toRecord } = this.#source;
    const { index, values } = this.#load;
    const draft = draftRecord(toRecord(head, this.#load, namesVersion), this.dataBytes, allocate);
    if (index !== undefined) writePartIndex(draft.data, index);
    writeElements(draft.data.subarray(this.#indexBytes), values(), encoding);
    return sealMessage(draft);
  }
}

function writeElements(target: Uint8Array, values: TensorData, encoding?: Encoding): void {
  if (encoding === undefined) target.set(bytesOf(values));
  else if (values instanceof Float32Array) encodeElements(encoding, values, target);
}
