import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { mismatch, PserverError } from "../protocol/errors.js";
import { quoteName } from "../protocol/names.js";
import { io } from "../system/file-errors.js";
import { abortable, FILE_MODES, makeDirectories, removeEmptyDirectories, throwIfAborted, writeFileAtomically, } from "./atomic-write.js";
import { checkReplaceable, kindOf, writeDirectoryModel } from "./directory-model.js";
import { badPath, formatOf, resolveModelPath, unknownFormat, } from "./model-path.js";
import { writeNpz } from "./npz.js";
import { writePaddleTar } from "./paddle-tar.js";
import { writeSafetensors } from "./safetensors.js";
import { badName, checkHeaders, checkMetadata, dataBytes, exactly, showShape, } from "./tensor-headers.js";
const SHARD_NAME = /^(.+):sparse-(0|[1-9]\d{0,8})$/s;
const LISTED_MAX = 10;
/**
 * Joins the parameters `<name>:sparse-0` … `<name>:sparse-<n-1>` along axis 0 into one tensor
 * `<name>`, in the place of the first of them; every other parameter stays as it is.
 * @throws MISSING_SHARD listing the missing numbers below the highest; BAD_NAME if `<name>` is a parameter
 * too; BAD_DTYPE, BAD_SHAPE if shards differ in more than their rows; and what {@link checkHeaders} refuses.
 */
export function mergeSparse(headers) {
    checkHeaders(headers);
    const shards = shardsByName(headers);
    const nonShard = headers.find(({ name }) => shards.has(name) && !SHARD_NAME.test(name));
    if (nonShard !== undefined)
        throw nameTaken(nonShard.name);
    return headers.flatMap((header) => {
        const name = SHARD_NAME.exec(header.name)?.[1];
        if (name === undefined)
            return [{ header, parts: [header] }];
        const parts = shards.get(name) ?? [];
        return parts[0] === header ? [mergeShards(name, parts)] : [];
    });
}
/** Groups the sparse shards among these parameters by the name of the tensor that a save joins them into. */
export function shardsByName(headers) {
    const shards = new Map();
    for (const header of headers) {
        const name = SHARD_NAME.exec(header.name)?.[1];
        if (name === undefined)
            continue;
        const group = shards.get(name);
        if (group === undefined)
            shards.set(name, [header]);
        else
            group.push(header);
    }
    return shards;
}
function mergeShards(name, unordered) {
    const parts = [...unordered].sort((a, b) => shardNumber(a) - shardNumber(b));
    checkComplete(name, parts.map(shardNumber));
    const [first] = parts;
    if (first === undefined)
        throw new PserverError("INTERNAL", `no shards of ${quoteName(name)}`);
    const row = JSON.stringify(first.shape.slice(1));
    let rows = 0;
    for (const part of parts) {
        if (part.dtype !== first.dtype) {
            throw differs("BAD_DTYPE", part, `dtype ${first.dtype} as ${quoteName(first.name)}`, part.dtype);
        }
        const [partRows] = part.shape;
        if (partRows === undefined)
            throw differs("BAD_SHAPE", part, "at least one dimension", "a scalar");
        if (JSON.stringify(part.shape.slice(1)) !== row) {
            const expected = `rows of shape ${row} as ${quoteName(first.name)}`;
            throw differs("BAD_SHAPE", part, expected, `shape ${showShape(part.shape)}`);
        }
        rows += partRows;
    }
    const header = { name, dtype: first.dtype, shape: [rows, ...first.shape.slice(1)] };
    dataBytes(header);
    return { header, parts };
}
function shardNumber({ name }) {
    return Number(SHARD_NAME.exec(name)?.[2]);
}
/**
 * Checks that no shard is missing. Iterates over the shards, not over the numbers, because a shard may have
 * any number.
 */
function checkComplete(name, numbers) {
    const missing = [];
    let expected = 0;
    let missingCount = 0;
    for (const index of numbers) {
        missingCount += index - expected;
        while (expected < index && missing.length < LISTED_MAX)
            missing.push(expected++);
        expected = index + 1;
    }
    if (missingCount === 0)
        return;
    const listed = missing.map((index) => `${name}:sparse-${index}`);
    const more = missingCount > missing.length ? ` and ${missingCount - missing.length} more` : "";
    throw new PserverError("MISSING_SHARD", `shards of ${quoteName(name)}: expected 0 to ${expected - 1}; missing ${listed.map(quoteName).join(", ")}${more}`, { parameter: name, expected, received: numbers.length, missing });
}
function nameTaken(name) {
    return badName(name, `no parameter of this name beside shards ${quoteName(`${name}:sparse-…`)}`);
}
function differs(code, part, expected, received) {
    const details = { parameter: part.name };
    return mismatch(code, `shard ${quoteName(part.name)}`, expected, received, details);
}
/**
 * Writes a model in the format of its name: `*.safetensors`, `*.npz`, `*.tar` (PaddlePaddle's
 * `model.tar`), or a directory for a name that ends in `/`, holds no `.`, or is one already. Only the
 * user who saves it can read it. Sparse shards are merged. What was there before is replaced when
 * everything new is on disk, and stays if anything fails; directories that were made for it are removed
 * then. Memory holds a chunk at a time. A process that is killed may leave a `.pserver-save-….tmp` beside the
 * model, which the next save into that directory removes.
 * @throws before anything is written: BAD_PATH; EMPTY, TOO_LARGE, BAD_NAME, BAD_DTYPE, BAD_SHAPE,
 * MISSING_SHARD for the tensors; BAD_VALUE, TOO_LARGE for the metadata. Later: BAD_LENGTH if `chunks`
 * yields other than a tensor's bytes, and what it throws; DISK_FULL, IO; ABORTED.
 * @example
 * await saveModel({
 *   directory: "models",
 *   path: "mnist/epoch-3.safetensors",
 *   tensors: [{ name: "w", dtype: "float32", shape: [784, 10] }],
 *   chunks: (header) => pullBlocks(header.name),
 * });
 */
export async function saveModel(options) {
    const { directory, path, signal, metadata = {} } = options;
    const merged = mergeSparse(options.tensors);
    checkMetadata(metadata);
    const file = await resolveModelPath(directory, path);
    const format = await formatFor(file, path);
    await checkTarget(file, format, path);
    throwIfAborted(signal);
    const parent = dirname(file);
    const topmostCreated = await makeDirectories(parent);
    try {
        await checkParent(parent, path);
        const model = outgoing(merged, metadata, options);
        return { file, bytes: await write(file, format, model), format };
    }
    catch (error) {
        if (topmostCreated !== undefined)
            await removeEmptyDirectories(parent, topmostCreated);
        throw error;
    }
}
/** Returns the format for a path; an existing directory is saved as a directory, whatever its name. */
async function formatFor(file, path) {
    // `file` has its links resolved, but lacks a final slash of the path.
    const format = formatOf(path.endsWith("/") ? `${file}/` : file);
    if (format !== undefined)
        return format;
    if ((await kindOf(file)) === "directory")
        return "directory";
    throw unknownFormat(path);
}
function outgoing(merged, metadata, { chunks, signal }) {
    const partsByName = new Map(merged.map(({ header, parts }) => [header.name, parts]));
    return {
        tensors: merged.map(({ header }) => header),
        metadata,
        chunks: async function* (header) {
            for (const part of partsByName.get(header.name) ?? []) {
                yield* exactly(part, abortable(chunks(part), signal));
            }
        },
    };
}
async function write(file, format, model) {
    if (format === "directory")
        return await writeDirectoryModel(file, model);
    return await writeFileAtomically(file, CONTENTS[format](model), FILE_MODES.model);
}
/** The writer of each format of one file. */
const CONTENTS = {
    safetensors: writeSafetensors,
    npz: writeNpz,
    tar: writePaddleTar,
};
async function checkTarget(file, format, path) {
    if (format === "directory") {
        await checkReplaceable(file);
    }
    else if ((await kindOf(file)) === "directory") {
        throw badPath("a name that is free or a file's", `the directory ${file}`, path);
    }
}
/** Checks that no directory above the file has become a link since they were resolved. */
async function checkParent(parent, path) {
    const real = await io("resolve", parent, realpath(parent));
    if (real !== parent)
        throw badPath(parent, `${real}, where a symbolic link leads`, path);
}
//# sourceMappingURL=save-model.js.map