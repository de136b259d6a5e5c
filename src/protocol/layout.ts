import { DTYPES, type Dtype } from "./dtypes.ts";
import { PserverError } from "./errors.ts";
import { asMap, flagField, integerField } from "./fields.ts";
import { CUT_BLOCK_BYTES, HEADER_BYTES_MAX, SINGLE_BLOCK_BYTES_MAX } from "./limits.ts";
import { quoteName } from "./names.ts";
import { elementCount } from "./tensor.ts";

/** Bytes of a row number in a message. */
const ROW_NUMBER_BYTES = 4;

/**
 * How a parameter is cut into blocks. Every block but the last has `blockElements` elements, in C
 * order; block `i` lives on shard `(firstShard + i) mod shards`, or, of a pinned parameter, on `firstShard`.
 * Computed by the host that declares the parameter and stored: nobody else computes it.
 */
export interface Layout {
  readonly elements: number;
  readonly blockElements: number;
  readonly blocks: number;
  readonly firstShard: number;
  readonly shards: number;
  /** Set if all blocks lie on the first shard, as those of a fragment do. */
  readonly pinned?: true;
}

/** One block's place: its shard and its elements `start .. start + count` of the parameter. */
export interface BlockPlace {
  readonly index: number;
  readonly shard: number;
  readonly start: number;
  readonly count: number;
}

/** Hashes a name's UTF-8 bytes by FNV-1a of 32 bits, as PaddlePaddle does to place parameters. */
export function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash;
}

/**
 * Cuts a parameter into blocks: one up to 4 MiB, else blocks of at most 1 MiB by whole rows of axis 0, or
 * flat where a row is longer. A broker's smaller `maxPayloadBytes` lowers both. The first block is placed
 * on the shard that the name's hash says. `wholeRows`, for sparse parameters: no row is cut, and all rows of a block fit into one message
 * together with their numbers.
 * @throws TOO_LARGE if `wholeRows` and a row does not fit into a block.
 */
export function computeLayout(options: {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly shards: number;
  readonly maxPayloadBytes: number;
  readonly wholeRows?: boolean;
}): Layout {
  const { name, dtype, shape, shards, wholeRows = false } = options;
  const elements = elementCount(shape);
  const rows = shape[0] ?? 1;
  const rowElements = elements / rows;
  const rowBytes = rowElements * DTYPES[dtype].bytes;
  const messageRowBytes = rowBytes + (wholeRows ? ROW_NUMBER_BYTES : 0);
  const dataBytesMax = options.maxPayloadBytes - HEADER_BYTES_MAX;
  const firstShard = hashName(name) % shards;
  if (rows * rowBytes <= SINGLE_BLOCK_BYTES_MAX && rows * messageRowBytes <= dataBytesMax) {
    return { elements, blockElements: elements, blocks: 1, firstShard, shards };
  }
  const blockRows = Math.floor(
    Math.min(CUT_BLOCK_BYTES / rowBytes, dataBytesMax / messageRowBytes),
  );
  if (blockRows === 0 && wholeRows) throw rowTooLarge(name, messageRowBytes, dataBytesMax);
  const cutBytes = Math.min(CUT_BLOCK_BYTES, dataBytesMax);
  const blockElements =
    blockRows > 0 ? blockRows * rowElements : Math.floor(cutBytes / DTYPES[dtype].bytes);
  return {
    elements,
    blockElements,
    blocks: Math.ceil(elements / blockElements),
    firstShard,
    shards,
  };
}

function rowTooLarge(name: string, rowBytes: number, dataBytesMax: number): PserverError {
  const expected = Math.min(CUT_BLOCK_BYTES + ROW_NUMBER_BYTES, dataBytesMax);
  return new PserverError(
    "TOO_LARGE",
    `${quoteName(name)}: expected rows of at most ${expected} bytes with their numbers, because the ` +
      `parameter is sparse; received ${rowBytes}`,
    { parameter: name, expected, received: rowBytes },
  );
}

/**
 * Returns where block `index` of a layout lies.
 * @throws BAD_VALUE if there is no such block.
 */
export function blockPlace(layout: Layout, index: number): BlockPlace {
  if (!Number.isSafeInteger(index) || index < 0 || index >= layout.blocks) {
    throw new PserverError(
      "BAD_VALUE",
      `block: expected 0 to ${layout.blocks - 1}; received ${index}`,
      { expected: layout.blocks, received: index },
    );
  }
  const start = index * layout.blockElements;
  return {
    index,
    shard: shardOfBlock(layout, index),
    start,
    count: Math.min(layout.blockElements, layout.elements - start),
  };
}

/** What says on which shards the blocks of a layout lie. */
export type ShardPlaces = Pick<Layout, "firstShard" | "shards" | "pinned">;

/** Returns the shard of block `index`, which need not exist. */
export function shardOfBlock({ firstShard, shards, pinned }: ShardPlaces, index: number): number {
  return pinned === true ? firstShard : (firstShard + index) % shards;
}

/** Returns the shards of `count` consecutive blocks from `from` on, each once, in the order of their first blocks. */
export function shardsOfBlocks(places: ShardPlaces, from: number, count: number): number[] {
  const length = Math.min(count, places.pinned === true ? 1 : places.shards);
  return Array.from({ length }, (_, i) => shardOfBlock(places, from + i));
}

/** Returns the shard on which all parameters of a fragment lie: that of the hash of its name. */
export function shardOfFragment(fragment: string, shards: number): number {
  return hashName(fragment) % shards;
}

/** Returns a layout with all blocks on the shard of a fragment. */
export function pinToFragment(layout: Layout, fragment: string): Layout {
  return { ...layout, firstShard: shardOfFragment(fragment, layout.shards), pinned: true };
}

/** Returns the places of all blocks, in order. */
export function blockPlaces(layout: Layout): BlockPlace[] {
  const places: BlockPlace[] = [];
  for (let index = 0; index < layout.blocks; index++) places.push(blockPlace(layout, index));
  return places;
}

/** Reads a layout from a reply or record; @throws BAD_MESSAGE if it contradicts itself. */
export function layoutFromWire(value: unknown): Layout {
  const fields = asMap(value, "layout");
  const elements = integerField(fields, "elements", 1);
  const blockElements = integerField(fields, "blockElements", 1, elements);
  const shards = integerField(fields, "shards", 1);
  const blocks = integerField(fields, "blocks", 1);
  if (blocks !== Math.ceil(elements / blockElements)) {
    throw new PserverError(
      "BAD_MESSAGE",
      `layout: ${blocks} blocks of ${blockElements} do not make ${elements} elements`,
    );
  }
  return {
    elements,
    blockElements,
    blocks,
    firstShard: integerField(fields, "firstShard", 0, shards - 1),
    shards,
    ...(flagField(fields, "pinned") ? { pinned: true } : {}),
  };
}
