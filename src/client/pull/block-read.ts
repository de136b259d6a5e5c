import { type Encoding, encodedBytes } from "../../protocol/encoding/encodings.ts";
import type { BlockPlace } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { type BlockRows, blockRows, type PartIndex } from "../../protocol/parts.ts";

/** The state of a block that was read. */
export interface BlockState {
  /** Version of the block under the parameter's epoch. */
  readonly version: number;
  /** Generation of the shard's journal: another one may give the same version to other values. */
  readonly generation: number;
}

/** A block or part of a block to read. */
export interface BlockRead {
  readonly place: BlockPlace;
  /** Number of elements in the reply. */
  readonly elements: number;
  /** The elements wanted; undefined for all. */
  readonly index?: PartIndex | undefined;
  /** The state that the caller has the values of: an answer may be that it is the present one. */
  readonly known?: BlockState | undefined;
  /**
   * Receives the elements, still encoded, and the block's state; the bytes are valid during the call only.
   * Undefined bytes: the block still has the known state.
   */
  readonly take: (data: Uint8Array | undefined, state: BlockState) => void;
}

/** Blocks of one parameter to read under one epoch. */
export interface ParameterRead {
  readonly info: ParameterInfo;
  readonly blocks: readonly BlockRead[];
}

/** How every block of a call is read. */
export interface ReadMode {
  readonly encoding?: Encoding | undefined;
  /** The step that must have closed before; undefined for none. */
  readonly step?: number | undefined;
}

/** A {@link ParameterRead} under way. */
export interface PendingParameter {
  readonly info: ParameterInfo;
  /** The parameter as it was initialized anew meanwhile; what is read of the old one is of no use. */
  replacedBy: ParameterInfo | undefined;
}

/** A {@link BlockRead} under way. */
export interface PendingBlock {
  readonly parameter: PendingParameter;
  readonly read: BlockRead;
  /** Bytes of its values in a reply. */
  readonly bytes: number;
  /** The rows of the block; of any number if it is read whole. */
  readonly rows: BlockRows;
  isDone: boolean;
}

const ANY_ROWS: BlockRows = { rows: 1, rowElements: 1 };

/** The blocks of one parameter, to be read. */
export function pendingBlocks(
  parameter: PendingParameter,
  blocks: readonly BlockRead[],
  encoding: Encoding | undefined,
): PendingBlock[] {
  const { dtype, shape } = parameter.info;
  return blocks.map((read) => {
    const { start, count } = read.place;
    const bytes = encodedBytes(dtype, encoding, read.elements);
    const rows = read.index === undefined ? ANY_ROWS : blockRows({ shape, start, count });
    return { parameter, read, bytes, rows, isDone: false };
  });
}

/** Whether a block is still to be read. */
export function isWanted({ isDone, parameter }: PendingBlock): boolean {
  return !isDone && parameter.replacedBy === undefined;
}
