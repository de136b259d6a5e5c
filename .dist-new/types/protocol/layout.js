import { DTYPES } from "./dtypes.js";
import { PserverError } from "./errors.js";
import { asMap, integerField } from "./fields.js";
import { CUT_BLOCK_BYTES, HEADER_BYTES_MAX, SINGLE_BLOCK_BYTES_MAX } from "./limits.js";
import { quoteName } from "./names.js";
import { elementCount } from "./tensor.js";
/** Bytes of a row number in a message. */
const ROW_NUMBER_BYTES = 4;
/** Hashes a name's UTF-8 bytes by FNV-1a of 32 bits, as PaddlePaddle does to place parameters. */
export function hashName(name) {
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
export function computeLayout(options) {
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
    const blockRows = Math.floor(Math.min(CUT_BLOCK_BYTES / rowBytes, dataBytesMax / messageRowBytes));
    if (blockRows === 0 && wholeRows)
        throw rowTooLarge(name, messageRowBytes, dataBytesMax);
    const cutBytes = Math.min(CUT_BLOCK_BYTES, dataBytesMax);
    const blockElements = blockRows > 0 ? blockRows * rowElements : Math.floor(cutBytes / DTYPES[dtype].bytes);
    return {
        elements,
        blockElements,
        blocks: Math.ceil(elements / blockElements),
        firstShard,
        shards,
    };
}
function rowTooLarge(name, rowBytes, dataBytesMax) {
    const expected = Math.min(CUT_BLOCK_BYTES + ROW_NUMBER_BYTES, dataBytesMax);
    return new PserverError("TOO_LARGE", `${quoteName(name)}: expected rows of at most ${expected} bytes with their numbers, because the ` +
        `parameter is sparse; received ${rowBytes}`, { parameter: name, expected, received: rowBytes });
}
/**
 * Returns where block `index` of a layout lies.
 * @throws BAD_VALUE if there is no such block.
 */
export function blockPlace(layout, index) {
    if (!Number.isSafeInteger(index) || index < 0 || index >= layout.blocks) {
        throw new PserverError("BAD_VALUE", `block: expected 0 to ${layout.blocks - 1}; received ${index}`, { expected: layout.blocks, received: index });
    }
    const start = index * layout.blockElements;
    return {
        index,
        shard: (layout.firstShard + index) % layout.shards,
        start,
        count: Math.min(layout.blockElements, layout.elements - start),
    };
}
/** Returns the places of all blocks, in order. */
export function blockPlaces(layout) {
    const places = [];
    for (let index = 0; index < layout.blocks; index++)
        places.push(blockPlace(layout, index));
    return places;
}
/** Reads a layout from a reply or record; @throws BAD_MESSAGE if it contradicts itself. */
export function layoutFromWire(value) {
    const fields = asMap(value, "layout");
    const elements = integerField(fields, "elements", 1);
    const blockElements = integerField(fields, "blockElements", 1, elements);
    const shards = integerField(fields, "shards", 1);
    const blocks = integerField(fields, "blocks", 1);
    if (blocks !== Math.ceil(elements / blockElements)) {
        throw new PserverError("BAD_MESSAGE", `layout: ${blocks} blocks of ${blockElements} do not make ${elements} elements`);
    }
    return {
        elements,
        blockElements,
        blocks,
        firstShard: integerField(fields, "firstShard", 0, shards - 1),
        shards,
    };
}
//# sourceMappingURL=layout.js.map