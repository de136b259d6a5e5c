import { DTYPES } from "../../protocol/dtypes.ts";
import type { BlockRows, PartIndex } from "../../protocol/parts.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import { ElementRanges } from "./element-ranges.ts";
import { eachChunk, type Payload } from "./payload.ts";
import { type ColumnVisit, RowPieces, type RowVisit } from "./row-pieces.ts";

const COUNT_BYTES = 4;
/** Longest rows that are gathered: copying longer ones there and back costs more than a call for each. */
const GATHERED_BYTES_MAX = 256;

/** Elements of a block that a record changes, in one column or several that are changed together. */
export interface ColumnTarget {
  /** Division of the block into rows. */
  readonly rows: BlockRows;
  /** The elements; undefined for all. */
  readonly part: PartIndex | undefined;
  readonly elementBytes: number;
  /** Addresses of the columns: of the values, and of slots that are as long. At most four. */
  readonly columns: readonly number[];
  /** Address of the rows' update counts, if the change of a row depends on its own. */
  readonly counts?: number | undefined;
  /** Changes rows with different counts in one call, if there is a kernel for it. */
  readonly visitRows?: RowVisit | undefined;
}

/**
 * Calls `visit` for the elements of a payload, in pieces, with the addresses of the elements of the
 * block that they are for. Every element is visited once; those of one visit have the same update count.
 * Short rows that lie apart are gathered for the visit and scattered behind it.
 * @param shape called before with the number of elements at the beginning of the scratch, to change them.
 */
export function eachColumn(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  visit: ColumnVisit,
  shape: (n: number) => void = () => {},
): void {
  if (isApart(memory, target)) eachRowPiece(memory, target, payload, visit, shape);
  else eachRange(memory, target, payload, visit, shape);
}

/** Whether a target is rows that lie apart, or differ in their update counts, and go in pieces. */
function isApart({ kernels }: ShardMemory, target: ColumnTarget): boolean {
  const { rows, part, elementBytes, counts, visitRows } = target;
  const rowBytes = rows.rowElements * elementBytes;
  const fits =
    visitRows === undefined ? rowBytes <= GATHERED_BYTES_MAX : RowPieces.isPiece(rowBytes);
  if (part?.inner !== undefined || !fits) return false;
  const n = part?.rows.length ?? rows.rows;
  const first = part?.rows[0] ?? 0;
  const last = part?.rows[n - 1] ?? n - 1;
  if (last - first + 1 !== n) return true;
  return counts !== undefined && kernels.sameCounts(counts, first, last + 1) < n;
}

function eachRowPiece(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  visit: ColumnVisit,
  shape: (n: number) => void,
): void {
  const { rows, part, elementBytes, columns, counts, visitRows } = target;
  const pieces = new RowPieces(memory, rows.rowElements, elementBytes);
  let first = 0;
  const changePiece = (elements: number): void => {
    shape(elements);
    const n = elements / rows.rowElements;
    pieces.take(part?.rows, first, n);
    pieces.change(columns, counts, n, visit, visitRows);
    first += n;
  };
  eachChunk(memory, payload, changePiece, pieces.rowsMax * rows.rowElements * elementBytes);
}

function eachRange(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  visit: ColumnVisit,
  shape: (n: number) => void,
): void {
  const ranges = ElementRanges.of(target.rows, target.part);
  const elementBytes = DTYPES[payload.dtype].bytes;
  const walk = new RangeWalk(memory, target);
  eachChunk(memory, payload, (elements) => {
    shape(elements);
    const { scratch } = memory;
    for (let done = 0; done < elements && ranges.next(elements - done); done += ranges.count) {
      walk.visit(ranges.start, ranges.count, scratch + done * elementBytes, visit);
    }
  });
}

/** Visits contiguous ranges of a target where they are. */
export class RangeWalk {
  readonly #memory: ShardMemory;
  readonly #target: ColumnTarget;
  readonly #columns: number[];
  readonly #counts: Uint32Array | undefined;

  /** The memory must not grow while it is in use. */
  constructor(memory: ShardMemory, target: ColumnTarget) {
    this.#memory = memory;
    this.#target = target;
    this.#columns = [...target.columns];
    if (target.counts === undefined) return;
    const { rows } = target.rows;
    const { buffer, byteOffset } = memory.bytes(target.counts, rows * COUNT_BYTES);
    this.#counts = new Uint32Array(buffer, byteOffset, rows);
  }

  /** Visits `n` elements from `start` on, those of rows with the same update count at a time. */
  visit(start: number, n: number, incoming: number, visit: ColumnVisit): void {
    const { counts, rows, elementBytes } = this.#target;
    if (counts === undefined || this.#counts === undefined) {
      visit(this.#at(start), incoming, n, 0);
      return;
    }
    const end = start + n;
    for (let at = start; at < end; ) {
      const row = Math.floor(at / rows.rowElements);
      const alike = this.#memory.kernels.sameCounts(counts, row, Math.ceil(end / rows.rowElements));
      const stop = Math.min((row + alike) * rows.rowElements, end);
      const count = this.#counts[row] as number;
      visit(this.#at(at), incoming + (at - start) * elementBytes, stop - at, count);
      at = stop;
    }
  }

  /** The addresses of an element in the columns; the same array each time. */
  #at(element: number): readonly number[] {
    const { columns, elementBytes } = this.#target;
    for (let i = 0; i < columns.length; i++) {
      this.#columns[i] = (columns[i] as number) + element * elementBytes;
    }
    return this.#columns;
  }
}
