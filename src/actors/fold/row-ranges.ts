import { DTYPES, type HalfDtype } from "../../protocol/dtypes.ts";
import type { BlockRows, PartIndex } from "../../protocol/messages/parts.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import type { BlockActor } from "./block-actor.ts";
import { computedAs, ElementRanges, eachChunk, NARROW, type Payload, WIDEN } from "./elements.ts";

// Rows that lie apart are changed in ranges of the row list: the rows of a range are gathered from their columns into
// the scratch of the shard's memory, changed there as contiguous elements, and scattered back. Kernels do all of it
// for the whole range, so that rows of one element cost little.

/** Bytes of one column in a range: all columns of a range stay in a near cache. */
const RANGE_BYTES = 32 * 1024;
/** Bytes of the longest rows that are gathered to be read or to close a step. Longer rows are visited one by one. */
const SHORT_BYTES_MAX = 1024;
/** Bytes of the longest rows that are gathered although a kernel could change them in place. */
const KERNEL_GATHERED_BYTES_MAX = 64;
/** Rows of a range at most. */
const RANGE_ROWS = 2048;
/** Rows that a group with the same update count needs at least to be worth a call of its own. */
const GROUP_ROWS_MIN = 8;
/** Columns gathered at most: the values and three slots. */
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
 * @param incoming address of the elements of the record.
 * @param count updates that the rows have had; 0 if the caller has not asked for counts.
 */
export type ColumnVisit = (
  columns: readonly number[],
  incoming: number,
  n: number,
  count: number,
) => void;

/** Changes the `n` rows of a list in place; `list` is its address. See {@link ColumnVisit} for the rest. */
export type RowVisit = (incoming: number, list: number, n: number) => void;

/** Walks over ranges of the row lists of one block. It uses the scratch of the memory for the current range. */
export class RowRanges {
  /** Rows of a range at most. */
  readonly rowsMax: number;
  readonly #memory: ShardMemory;
  readonly #rowElements: number;
  readonly #rowBytes: number;
  readonly #half: HalfDtype | undefined;
  readonly #columns: number[] = [];
  readonly #groupColumns: number[] = [];

  /** {@link fitsRange} must hold for the bytes of a row. `half`: as in {@link ColumnTarget}. */
  constructor(memory: ShardMemory, rowElements: number, elementBytes: number, half?: HalfDtype) {
    this.#memory = memory;
    this.#half = half;
    this.#rowElements = rowElements;
    this.#rowBytes = rowElements * elementBytes;
    this.rowsMax = Math.min(RANGE_ROWS, Math.floor(RANGE_BYTES / this.#rowBytes));
  }

  /** Whether rows are short enough to be gathered for a read or the close of a step. */
  static isShort(rowBytes: number): boolean {
    return rowBytes <= SHORT_BYTES_MAX;
  }

  /** Whether rows that a kernel can change in place are short enough for a range. */
  static fitsRange(rowBytes: number): boolean {
    return rowBytes <= RANGE_BYTES;
  }

  /** Makes the `n` rows from place `first` of a list on the current range. Without a list, places are row numbers. */
  take(list: Uint32Array | undefined, first: number, n: number): void {
    const at = this.#memory.scratch + LIST;
    if (list === undefined) {
      this.#memory.kernels.numberRows(at, first, n);
      return;
    }
    const { buffer, byteOffset } = this.#memory.bytes(at, n * 4);
    new Uint32Array(buffer, byteOffset, n).set(list.subarray(first, first + n));
  }

  /** Address of the row numbers of the current range. */
  get list(): number {
    return this.#memory.scratch + LIST;
  }

  /** Reads the last row number of the current range, which has `n` rows. */
  last(n: number): number {
    const { buffer, byteOffset } = this.#memory.bytes(this.list + 4 * (n - 1), 4);
    return new Uint32Array(buffer, byteOffset, 1)[0] as number;
  }

  /** Copies the `n` rows of the current range from a column to an address. */
  gather(to: number, column: number, n: number): void {
    this.#memory.kernels.gatherRows(to, column, this.list, n, this.#rowBytes);
  }

  /**
   * Changes the `n` rows of the current range in these columns, at most four. The incoming elements are at the
   * beginning of the scratch. With `counts`, the address of the rows' update counts, `visit` is called once for the
   * rows of each count, else once for all rows. `visitRows`, if given, is called instead for rows that are not worth
   * gathering or whose counts mostly differ; rows that are not short need it.
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
      if (i === 0 && this.#half !== undefined) this.#gatherHalves(columns[0] as number, list, n);
      else kernels.gatherRows(this.#columns[i] as number, columns[i] as number, list, n, rowBytes);
    }
    if (counts === undefined) visit(this.#columns, incoming, n * this.#rowElements, 0);
    else this.#eachGroup(groups, incoming, visit);
    for (let i = 0; i < columns.length; i++) {
      if (i === 0 && this.#half !== undefined) this.#scatterHalves(columns[0] as number, list, n);
      else kernels.scatterRows(columns[i] as number, list, this.#columns[i] as number, n, rowBytes);
    }
  }

  /** Gathers rows of half floats into the range's first column, as float32. */
  #gatherHalves(column: number, list: number, n: number): void {
    if (this.#half === undefined) return;
    const { kernels } = this.#memory;
    const [to, elements] = [this.#columns[0] as number, n * this.#rowElements];
    // Half floats and float32 end at the same address, so they can be widened in place.
    const halves = to + elements * HALF_BYTES;
    kernels.gatherRows(halves, column, list, n, this.#rowElements * HALF_BYTES);
    kernels[WIDEN[this.#half]](to, halves, elements);
  }

  /** Rounds the range's first column to half floats and scatters them. */
  #scatterHalves(column: number, list: number, n: number): void {
    if (this.#half === undefined) return;
    const { kernels, scratch } = this.#memory;
    // The incoming elements, at the beginning of the scratch, have been used.
    kernels[NARROW[this.#half]](scratch, this.#columns[0] as number, n * this.#rowElements);
    kernels.scatterRows(column, list, scratch, n, this.#rowElements * HALF_BYTES);
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

/**
 * Copies a list of rows to the scratch, range by range, and calls `visit` with the address and length of each range.
 */
export function eachListRange(
  memory: ShardMemory,
  list: Uint32Array,
  visit: (pointer: number, n: number) => void,
): void {
  const { scratch, scratchBytes } = memory;
  const rangeRows = scratchBytes / 4;
  for (let first = 0; first < list.length; first += rangeRows) {
    const range = list.subarray(first, first + rangeRows);
    const { buffer, byteOffset } = memory.bytes(scratch, range.length * 4);
    new Uint32Array(buffer, byteOffset, range.length).set(range);
    visit(scratch, range.length);
  }
}

const COUNT_BYTES = 4;
const HALF_BYTES = 2;
/**
 * Bytes of the longest rows that are gathered: copying longer ones there and back costs more than a call for each.
 */
const GATHERED_BYTES_MAX = 256;

/** Elements of a block that a record changes, in one column or several that are changed together. */
export interface ColumnTarget {
  /** Division of the block into rows. */
  readonly rows: BlockRows;
  /** The elements; undefined for all. */
  readonly part: PartIndex | undefined;
  /** Bytes of an element as it is computed. */
  readonly elementBytes: number;
  /** Addresses of the columns, at most four: the values, and slots of as many elements. */
  readonly columns: readonly number[];
  /**
   * Set if the first column holds half floats of this type. They are visited as float32, like the elements of the other
   * columns and the incoming ones, and rounded once when the visit is over.
   */
  readonly half?: HalfDtype | undefined;
  /** Address of the rows' update counts; set if the change of a row depends on its count. */
  readonly counts?: number | undefined;
  /** Changes rows with different counts in one call; undefined if there is no kernel for it. */
  readonly visitRows?: RowVisit | undefined;
}

/**
 * Calls `visit` for the elements of a payload, range by range, with the addresses of the block's elements that they
 * change. Every element is visited once; the elements of one visit have the same update count. Short rows that lie
 * apart are gathered before the visit and scattered after it.
 * @param shape called before a visit with the number of elements at the beginning of the scratch; may change them.
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

/** Whether a target's rows are gathered: they lie apart, or differ in their update counts, and are short enough. */
function isApart({ kernels }: ShardMemory, target: ColumnTarget): boolean {
  const { rows, part, elementBytes, counts, visitRows } = target;
  const rowBytes = rows.rowElements * elementBytes;
  const fits =
    visitRows === undefined ? rowBytes <= GATHERED_BYTES_MAX : RowRanges.fitsRange(rowBytes);
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
  const { rows, part, elementBytes, columns, half, counts, visitRows } = target;
  const ranges = new RowRanges(memory, rows.rowElements, elementBytes, half);
  let first = 0;
  const changeRange = (elements: number): void => {
    shape(elements);
    const n = elements / rows.rowElements;
    ranges.take(part?.rows, first, n);
    ranges.change(columns, counts, n, visit, visitRows);
    first += n;
  };
  eachChunk(memory, payload, changeRange, ranges.rowsMax * rows.rowElements * elementBytes);
}

function eachRange(
  memory: ShardMemory,
  target: ColumnTarget,
  payload: Payload,
  visit: ColumnVisit,
  shape: (n: number) => void,
): void {
  const ranges = ElementRanges.of(target.rows, target.part);
  const elementBytes = DTYPES[computedAs(payload.dtype)].bytes;
  const walk = new RangeWalk(memory, target);
  const visitChunk = (elements: number): void => {
    shape(elements);
    const { scratch } = memory;
    for (let done = 0; done < elements && ranges.next(elements - done); done += ranges.count) {
      walk.visit(ranges.start, ranges.count, scratch + done * elementBytes, visit);
    }
  };
  const isHalf = target.half !== undefined;
  eachChunk(memory, payload, visitChunk, isHalf ? WIDENED_AT : memory.scratchBytes);
}

/** Where half floats are widened in the scratch: behind the incoming elements. */
const WIDENED_AT = 128 * 1024;
/** Half floats that are widened at a time. */
const WIDENED_ELEMENTS = 32 * 1024;

/** Visits contiguous ranges of a target in place. */
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

  /** Visits `n` elements from `start` on; each visit covers neighbouring rows with the same update count. */
  visit(start: number, n: number, incoming: number, visit: ColumnVisit): void {
    const { counts, rows, elementBytes } = this.#target;
    if (counts === undefined || this.#counts === undefined) {
      this.#visitAlike(start, n, incoming, 0, visit);
      return;
    }
    const end = start + n;
    for (let at = start; at < end; ) {
      const row = Math.floor(at / rows.rowElements);
      const alike = this.#memory.kernels.sameCounts(counts, row, Math.ceil(end / rows.rowElements));
      const stop = Math.min((row + alike) * rows.rowElements, end);
      const count = this.#counts[row] as number;
      this.#visitAlike(at, stop - at, incoming + (at - start) * elementBytes, count, visit);
      at = stop;
    }
  }

  /** Visits elements that have the same update count: in place, or half floats where they are widened. */
  #visitAlike(start: number, n: number, incoming: number, count: number, visit: ColumnVisit): void {
    const { half, elementBytes } = this.#target;
    if (half === undefined) {
      visit(this.#at(start), incoming, n, count);
      return;
    }
    const { kernels, scratch } = this.#memory;
    const floats = scratch + WIDENED_AT;
    const values = this.#target.columns[0] as number;
    for (let done = 0; done < n; done += WIDENED_ELEMENTS) {
      const elements = Math.min(WIDENED_ELEMENTS, n - done);
      const halves = values + (start + done) * HALF_BYTES;
      this.#at(start + done);
      this.#columns[0] = floats;
      kernels[WIDEN[half]](floats, halves, elements);
      visit(this.#columns, incoming + done * elementBytes, elements, count);
      kernels[NARROW[half]](halves, floats, elements);
    }
  }

  /** Returns the addresses of an element in the columns, in the same array each time. */
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

/** Returns the address of the update counts of a block's rows; undefined unless the parameter is sparse. */
export function rowCounts(block: BlockActor): number | undefined {
  const { counts } = block.plan;
  return counts === undefined ? undefined : block.slotPointer(counts);
}

/** Returns the count after one more update. */
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
