import { type Allocate, sealMessage } from "../protocol/codec.ts";
import { bytesOf, type TensorData } from "../protocol/dtypes.ts";
import { encodeElements } from "../protocol/encoding/elements.ts";
import { type Encoding, encodedBytes } from "../protocol/encoding/encodings.ts";
import { type BlockPlace, blockPlaces } from "../protocol/layout.ts";
import type { ParameterInfo } from "../protocol/lifecycle-messages.ts";
import { type PartIndex, partCounts, partIndexBytes, writePartIndex } from "../protocol/parts.ts";
import {
  draftRecord,
  type PushOperation,
  type RecordHead,
  type TrainerRecord,
} from "../protocol/records.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import type { Tensor } from "../protocol/tensor.ts";
import type { Piece, Topic } from "./batch.ts";
import { gatherPart, type PartSlice } from "./part-values.ts";

/** Who sends, and what the records of a tensor do. */
interface Sender {
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** What a push does. */
export interface Push {
  /** L2 norm of all elements that the call sends of the parameter, as encoded, where it is needed. */
  readonly norm?: number;
  readonly encoding?: Encoding;
  /** What it does to the block with this index; asked when the message is made. */
  readonly operation: (block: number) => PushOperation;
  /** Has the operation of a block name no version of it any more; false if it named none. */
  readonly forgetSeen?: (block: number) => boolean;
}

/** What all messages of one tensor have in common. */
interface Source {
  readonly sender: Sender;
  readonly info: ParameterInfo;
  readonly verb: TrainerRecord["verb"];
  readonly encoding?: Encoding | undefined;
  readonly toRecord: (head: RecordHead, load: Load) => TrainerRecord;
  readonly forgetSeen?: Push["forgetSeen"];
}

/** Elements that go to one block in one message. */
interface Load {
  readonly place: BlockPlace;
  readonly index?: PartIndex | undefined;
  readonly elements: number;
  /** Gives them when the message is made: what waits is not copied. */
  readonly values: () => TensorData;
}

/** Records that initialize every block of a parameter. */
export function initPieces(sender: Sender, info: ParameterInfo, tensor: Tensor): Piece[] {
  const { epoch, dtype, shape, config } = info;
  const toRecord = (head: RecordHead, { place }: Load): TrainerRecord => {
    const { start, count } = place;
    return { verb: "init", ...head, epoch, dtype, shape, start, count, config };
  };
  return wholeBlocks({ sender, info, verb: "init", toRecord }, tensor.data);
}

/** Records that overwrite every block of a parameter. */
export function setPieces(sender: Sender, info: ParameterInfo, tensor: Tensor): Piece[] {
  const { epoch, dtype } = info;
  const toRecord = (head: RecordHead): TrainerRecord => ({ verb: "set", ...head, epoch, dtype });
  return wholeBlocks({ sender, info, verb: "set", toRecord }, tensor.data);
}

/** Records that update every block of a parameter. */
export function pushPieces(
  sender: Sender,
  info: ParameterInfo,
  data: TensorData,
  push: Push,
): Piece[] {
  return wholeBlocks(pushSource(sender, info, push), data);
}

/** Records that update parts of blocks with the elements that `data` has for them. */
export function partPieces(
  sender: Sender,
  info: ParameterInfo,
  slices: readonly PartSlice[],
  data: TensorData,
  push: Push,
): Piece[] {
  const source = pushSource(sender, info, push);
  return slices.map((slice) => {
    const { index, elements, part } = slice;
    const values = (): TensorData => gatherPart(slice, data);
    return new TensorPiece(source, { place: part.place, index, elements, values });
  });
}

function pushSource(sender: Sender, info: ParameterInfo, push: Push): Source {
  const { epoch, dtype } = info;
  const { norm, encoding, operation, forgetSeen } = push;
  // Written out: copying the head entry by entry takes as long as everything else here.
  const toRecord = (head: RecordHead, { place, index }: Load): TrainerRecord => ({
    verb: "push",
    session: head.session,
    n: head.n,
    done: head.done,
    reply: head.reply,
    epoch,
    dtype,
    norm,
    encoding,
    operation: operation(place.index),
    part: index && partCounts(index),
  });
  return { sender, info, verb: "push", encoding, toRecord, ...(forgetSeen && { forgetSeen }) };
}

function wholeBlocks(source: Source, data: TensorData): Piece[] {
  return blockPlaces(source.info.layout).map((place) => {
    const { start, count } = place;
    const values = (): TensorData => data.subarray(start, start + count);
    return new TensorPiece(source, { place, elements: count, values });
  });
}

class TensorPiece implements Piece {
  readonly subject: string;
  readonly shard: number;
  readonly topic: Topic;
  readonly dataBytes: number;
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
    this.topic = { parameter: info.name, index: place.index };
    this.dataBytes = this.#indexBytes + encodedBytes(info.dtype, encoding, elements);
  }

  draft(head: RecordHead, allocate?: Allocate): Uint8Array {
    const { encoding, toRecord } = this.#source;
    const { index, values } = this.#load;
    const draft = draftRecord(toRecord(head, this.#load), this.dataBytes, allocate);
    if (index !== undefined) writePartIndex(draft.data, index);
    writeElements(draft.data.subarray(this.#indexBytes), values(), encoding);
    return sealMessage(draft);
  }

  forgetSeen(): boolean {
    return this.#source.forgetSeen?.(this.#load.place.index) ?? false;
  }
}

function writeElements(target: Uint8Array, values: TensorData, encoding?: Encoding): void {
  if (encoding === undefined) target.set(bytesOf(values));
  else if (values instanceof Float32Array) encodeElements(encoding, values, target);
}
