import type { ShardMemory } from "../memory/shard-memory.ts";

// Rows that lie apart are worked on in pieces: the rows of a piece are gathered from their columns into
// the scratch of the shard's memory, changed there as contiguous elements, and scattered back. All of
// it is done by kernels for the whole piece, so that rows of one element cost little.

/** Bytes of one column in a piece: all columns of a piece stay in a near cache. */
const PIECE_BYTES = 32 * 1024;
/** Longest rows that are gathered to be read or to close a step: longer ones are worth a call each. */
const SHORT_BYTES_MAX = 1024;
/** Longest rows that are gathered although a kernel could change them where they are. */
const KERNEL_GATHERED_BYTES_MAX = 64;
/** Rows of a piece at most. */
const PIECE_ROWS = 2048;
/** Smaller groups of rows with the same update count are not worth a call for each. */
const GROUP_ROWS_MIN = 8;
/** Columns that are gathered: the values and at most three slots. */
const COLUMNS_MAX = 4;

// Offsets in the scratch. Incoming elements are at its beginning, where payloads are copied to.
const ORDERED = PIECE_BYTES;
const COLUMNS = ORDERED + PIECE_BYTES;
const LIST = COLUMNS + COLUMNS_MAX * PIECE_BYTES;
const SORTED = LIST + 4 * PIECE_ROWS;
const ORDER = SORTED + 4 * PIECE_ROWS;
const GROUPS = ORDER + 4 * PIECE_ROWS;

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
export class RowPieces {
  /** Rows of a piece at most. */
  readonly rowsMax: number;
  readonly #memory: ShardMemory;
  readonly #rowElements: number;
  readonly #rowBytes: number;
  readonly #columns: number[] = [];
  readonly #groupColumns: number[] = [];

  /** The bytes of a row must be such that {@link isPiece} holds. */
  constructor(memory: ShardMemory, rowElements: number, elementBytes: number) {
    this.#memory = memory;
    this.#rowElements = rowElements;
    this.#rowBytes = rowElements * elementBytes;
    this.rowsMax = Math.min(PIECE_ROWS, Math.floor(PIECE_BYTES / this.#rowBytes));
  }

  /** Whether rows are short enough to be gathered for a read or the close of a step. */
  static isShort(rowBytes: number): boolean {
    return rowBytes <= SHORT_BYTES_MAX;
  }

  /** Whether rows are short enough for pieces, if a kernel changes them where they are. */
  static isPiece(rowBytes: number): boolean {
    return rowBytes <= PIECE_BYTES;
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
      this.#columns[i] = scratch + COLUMNS + i * PIECE_BYTES;
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
export function eachListPiece(
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
