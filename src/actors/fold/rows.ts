import { DTYPES } from "../../protocol/dtypes.ts";
import type { BlockRows, PartIndex } from "../../protocol/messages/parts.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockActor } from "./block-actor.ts";
import { ElementRanges, eachChunk, type Payload } from "./elements.ts";

// Rows that lie apart are worked on in pieces: the rows of a piece are gathered from their columns into
// the scratch of the shard's memory, changed there as contiguous elements, and scattered back. All of
// it is done by kernels for the whole piece, so that rows of one element cost little.

/** Bytes of one column in a piece: all columns of a piece stay in a near cache. */
const RANGE_BYTES = 32 * 1024;
/** Longest rows that are gathered to be read or to close a step: longer ones are worth a call each. */
const SHORT_BYTES_MAX = 1024;
/** Longest rows that are gathered although a kernel could change them where they are. */
const KERNEL_GATHERED_BYTES_MAX = 64;
/** Rows of a piece at most. */
const RANGE_ROWS = 2048;
/** Smaller groups of rows with the same update count are not worth a call for each. */
const GROUP_ROWS_MIN = 8;
/** Columns that are gathered: the values and at most three slots. */
const COLUMNS_MAX = 4;

// Offsets in the scratch. Incoming elements are at its beginning, where payloads are copied to.
const ORDERED = RANGE_BYTES;
const COLUMNS = ORDERED + RANGE_BYTES;
const LIST = COLUMNS + COLUMNS_MAX * RANGE_BYTES;
const SORTED = LIST + 4 * RANGE_ROWS;
const ORDER = SORTED + 4 * RANGE_ROWS;
const GROUPS = ORDER + 4 * RANGE_ROWS;

/**
 * Changes elements of columns.
 * @param columns addresses of the elements in each column.
 * @param incoming address of the elements that come with the change.
 * @param count updates that the rows have had; 0 if it was not asked for.
 */
export type ColumnVisit = (
  columns: readonly number[],
  incoming: number,
  n: number,
  count: number,
) => void;

/** Changes the `n` rows of a list at an address where they are; see {@link ColumnVisit} for the rest. */
export type RowVisit = (incoming: number, list: number, n: number) => void;

/** Pieces of row lists of one block. The scratch is theirs while a piece is in use. */
export class RowRanges {
  /** Rows of a piece at most. */
  readonly rowsMax: number;
  readonly #memory: ShardMemory;
  readonly #rowElements: number;
  readonly #rowBytes: number;
  readonly #columns: number[] = [];
  readonly #groupColumns: number[] = [];

  /** The bytes of a row must be such that {@link isGatherable} holds. */
  constructor(memory: ShardMemory, rowElements: number, elementBytes: number) {
    this.#memory = memory;
    this.#rowElements = rowElements;
    this.#rowBytes = rowElements * elementBytes;
    this.rowsMax = Math.min(RANGE_ROWS, Math.floor(RANGE_BYTES / this.#rowBytes));
  }

  /** Whether rows are short enough to be gathered for a read or the close of a step. */
  static isShort(rowBytes: number): boolean {
    return rowBytes <= SHORT_BYTES_MAX;
  }

  /** Whether rows are short enough for pieces, if a kernel changes them where they are. */
  static isGatherable(rowBytes: number): boolean {
    return rowBytes <= RANGE_BYTES;
  }

  /** Makes the `n` rows of a list from place `first` on the present piece; without a list, all rows. */
  take(list: Uint32Array | undefined, first: number, n: number): void {
    const at = this.#memory.scratch + LIST;
    if (list === undefined) {
      this.#memory.kernels.numberRows(at, first, n);
      return;
    }
    const { buffer, byteOffset } = this.#memory.bytes(at, n * 4);
    new Uint32Array(buffer, byteOffset, n).set(list.subarray(first, first + n));
  }

  /** Address of the row numbers of the present piece. */
  get list(): number {
    return this.#memory.scratch + LIST;
  }

  /** Last row number of the present piece, of `n` rows. */
  last(n: number): number {
    const { buffer, byteOffset } = this.#memory.bytes(this.list + 4 * (n - 1), 4);
    return new Uint32Array(buffer, byteOffset, 1)[0] as number;
  }

  /** Copies the rows of the present piece, of `n` rows, from a column to an address. */
  gather(to: number, column: number, n: number): void {
    this.#memory.kernels.gatherRows(to, column, this.list, n, this.#rowBytes);
  }

  /**
   * Changes the `n` rows of the present piece in these columns, at most four; the incoming elements are
   * at the beginning of the scratch. With `counts`, the address of the rows' update counts, `visit` is
   * called for the rows of each count, else once; `visitRows`, if there is one, is called instead for
   * rows that are not worth gathering or whose counts mostly differ.
   * Rows that are not short need a `visitRows`.
   */
  change(
    columns: readonly number[],
    counts: number | undefined,
    n: number,
    visit: ColumnVisit,
    visitRows?: RowVisit,
  ): void {
    const { scratch, kernels } = this.#memory;
    const rowBytes = this.#rowBytes;
    if (visitRows !== undefined && rowBytes > KERNEL_GATHERED_BYTES_MAX) {
      visitRows(scratch, this.list, n);
      return;
    }
    const groups = counts === undefined ? 1 : this.#group(counts, n);
    if (visitRows !== undefined && groups * GROUP_ROWS_MIN > n) {
      visitRows(scratch, this.list, n);
      return;
    }
    const list = scratch + (groups > 1 ? SORTED : LIST);
    let incoming = scratch;
    if (groups > 1) {
      incoming = scratch + ORDERED;
      kernels.gatherRows(incoming, scratch, scratch + ORDER, n, rowBytes);
    }
    for (let i = 0; i < columns.length; i++) {
      this.#columns[i] = scratch + COLUMNS + i * RANGE_BYTES;
      kernels.gatherRows(this.#columns[i] as number, columns[i] as number, list, n, rowBytes);
    }
    if (counts === undefined) visit(this.#columns, incoming, n * this.#rowElements, 0);
    else this.#eachGroup(groups, incoming, visit);
    for (let i = 0; i < columns.length; i++) {
      kernels.scatterRows(columns[i] as number, list, this.#columns[i] as number, n, rowBytes);
    }
  }

  #group(counts: number, n: number): number {
    const { scratch, kernels } = this.#memory;
    const [groups, order, sorted] = [scratch + GROUPS, scratch + ORDER, scratch + SORTED];
    return kernels.groupRows(groups, order, sorted, counts, this.list, n, scratch + COLUMNS);
  }

  #eachGroup(groups: number, incoming: number, visit: ColumnVisit): void {
    const { buffer, byteOffset } = this.#memory.bytes(this.#memory.scratch + GROUPS, groups * 8);
    const table = new Uint32Array(buffer, byteOffset, groups * 2);
    let row = 0;
    for (let group = 0; group < groups; group++) {
      const count = table[2 * group] as number;
      const end = table[2 * group + 1] as number;
      const offset = row * this.#rowBytes;
      for (let i = 0; i < this.#columns.length; i++) {
        this.#groupColumns[i] = (this.#columns[i] as number) + offset;
      }
      visit(this.#groupColumns, incoming + offset, (end - row) * this.#rowElements, count);
      row = end;
    }
  }
}

/** Calls `visit` for a list of rows, in pieces, with the address and length of each in the scratch. */
export function eachListRange(
  memory: ShardMemory,
  list: Uint32Array,
  visit: (pointer: number, n: number) => void,
): void {
  const { scratch, scratchBytes } = memory;
  const most = scratchBytes / 4;
  for (let first = 0; first < list.length; first += most) {
    const piece = list.subarray(first, first + most);
    const { buffer, byteOffset } = memory.bytes(scratch, piece.length * 4);
    new Uint32Array(buffer, byteOffset, piece.length).set(piece);
    visit(scratch, piece.length);
  }
}

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
  if (isApart(memory, target)) eachRowRange(memory, target, payload, visit, shape);
  else eachRange(memory, target, payload, visit, shape);
}

/** Whether a target is rows that lie apart, or differ in their update counts, and go in pieces. */
function isApart({ kernels }: ShardMemory, target: ColumnTarget): boolean {
  const { rows, part, elementBytes, counts, visitRows } = target;
  const rowBytes = rows.rowElements * elementBytes;
  const fits =
    visitRows === undefined ? rowBytes <= GATHERED_BYTES_MAX : RowRanges.isGatherable(rowBytes);
  if (part?.inner !== undefined || !fits) return false;
  const n = part?.rows.length ?? rows.rows;
  const first = part?.rows[0] ?? 0;
  const last = part?.rows[n - 1] ?? n - 1;
  if (last - first + 1 !== n) return true;
  return counts !== undefined && kernels.sameCounts(counts, first, last + 1) < n;
}

function eachRowRange(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  visit: ColumnVisit,
  shape: (n: number) => void,
): void {
  const { rows, part, elementBytes, columns, counts, visitRows } = target;
  const pieces = new RowRanges(memory, rows.rowElements, elementBytes);
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

/** Largest update count of a row; later updates keep it. */
const COUNT_MAX = 0xffffffff;

/** Address of the update counts of a block's rows; undefined unless the parameter is sparse. */
export function rowCounts(block: BlockActor): number | undefined {
  const { counts } = block.plan;
  return counts === undefined ? undefined : block.slotPointer(counts);
}

/** The count after one more update. */
export function nextCount(count: number): number {
  return Math.min(count + 1, COUNT_MAX);
}

/** Counts one update of these rows, or of all rows; does nothing unless the parameter is sparse. */
export function countUpdate(
  memory: ShardMemory,
  block: BlockActor,
  list: Uint32Array | undefined,
): void {
  const counts = rowCounts(block);
  if (counts === undefined) return;
  const { kernels } = memory;
  if (list === undefined) kernels.countAll(counts, block.rows.rows);
  else eachListRange(memory, list, (pointer, n) => kernels.countRows(counts, pointer, n));
}
