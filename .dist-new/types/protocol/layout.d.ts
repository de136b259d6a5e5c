import { type Dtype } from "./dtypes.ts";
/**
 * How a parameter is cut into blocks. Every block but the last has `blockElements` elements, in C
 * order; block `i` lives on shard `(firstShard + i) mod shards`. Computed by the host that
 * declares the parameter and stored: nobody else computes it.
 */
export interface Layout {
    readonly elements: number;
    readonly blockElements: number;
    readonly blocks: number;
    readonly firstShard: number;
    readonly shards: number;
}
/** One block's place: its shard and its elements `start .. start + count` of the parameter. */
export interface BlockPlace {
    readonly index: number;
    readonly shard: number;
    readonly start: number;
    readonly count: number;
}
/** Hashes a name's UTF-8 bytes by FNV-1a of 32 bits, as PaddlePaddle does to place parameters. */
export declare function hashName(name: string): number;
/**
 * Cuts a parameter into blocks: one up to 4 MiB, else blocks of at most 1 MiB by whole rows of axis 0, or
 * flat where a row is longer. A broker's smaller `maxPayloadBytes` lowers both. The first block is placed
 * on the shard that the name's hash says. `wholeRows`, for sparse parameters: no row is cut, and all rows of a block fit into one message
 * together with their numbers.
 * @throws TOO_LARGE if `wholeRows` and a row does not fit into a block.
 */
export declare function computeLayout(options: {
    readonly name: string;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly shards: number;
    readonly maxPayloadBytes: number;
    readonly wholeRows?: boolean;
}): Layout;
/**
 * Returns where block `index` of a layout lies.
 * @throws BAD_VALUE if there is no such block.
 */
export declare function blockPlace(layout: Layout, index: number): BlockPlace;
/** Returns the places of all blocks, in order. */
export declare function blockPlaces(layout: Layout): BlockPlace[];
/** Reads a layout from a reply or record; @throws BAD_MESSAGE if it contradicts itself. */
export declare function layoutFromWire(value: unknown): Layout;
//# sourceMappingURL=layout.d.ts.map