import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { mismatch, PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";
import { io } from "../system/file-errors.ts";
import {
  abortable,
  FILE_MODES,
  type FileContent,
  makeDirectories,
  removeEmptyDirectories,
  throwIfAborted,
  writeFileAtomically,
} from "./atomic-write.ts";
import { checkReplaceable, kindOf, writeDirectoryModel } from "./directory-model.ts";
import {
  badPath,
  formatOf,
  type ModelFormat,
  resolveModelPath,
  unknownFormat,
  unknownName,
} from "./model-path.ts";
import { writeNpz } from "./npz.ts";
import { writePaddleTar } from "./paddle-tar.ts";
import {
  encodeOptimizers,
  OPTIMIZER_KEY,
  type SavedOptimizers,
  slotTensors,
} from "./safetensors/optimizer-state.ts";
import { writeSafetensors } from "./safetensors/safetensors.ts";
import {
  badName,
  checkHeaders,
  checkMetadata,
  dataBytes,
  exactly,
  type Metadata,
  type OutgoingModel,
  showShape,
  type TensorHeader,
} from "./tensor-headers.ts";

const SHARD_NAME = /^(.+):sparse-(0|[1-9]\d{0,8})$/s;
const LISTED_MAX = 10;

/** A tensor of the file, and the parameters that its bytes come from, in order along axis 0. */
export interface MergedTensor<Header extends TensorHeader = TensorHeader> {
  readonly header: TensorHeader;
  readonly parts: readonly Header[];
}

/**
 * Joins the parameters `<name>:sparse-0` … `<name>:sparse-<n-1>` along axis 0 into one tensor
 * `<name>`, in the place of the first of them; every other parameter stays as it is.
 * @throws MISSING_SHARD listing the missing numbers below the highest; BAD_NAME if `<name>` is a parameter
 * too; BAD_DTYPE, BAD_SHAPE if shards differ in more than their rows; and what {@link checkHeaders} refuses.
 */
export function mergeSparse<Header extends TensorHeader>(
  headers: readonly Header[],
): MergedTensor<Header>[] {
  checkHeaders(headers);
  const shards = shardsByName(headers);
  const nonShard = headers.find(({ name }) => shards.has(name) && !SHARD_NAME.test(name));
  if (nonShard !== undefined) throw nameTaken(nonShard.name);
  return headers.flatMap((header) => {
    const name = SHARD_NAME.exec(header.name)?.[1];
    if (name === undefined) return [{ header, parts: [header] }];
    const parts = shards.get(name) ?? [];
    return parts[0] === header ? [mergeShards(name, parts)] : [];
  });
}

/** Groups the sparse shards among these parameters by the name of the tensor that a save joins them into. */
export function shardsByName<Header extends TensorHeader>(
  headers: readonly Header[],
): ReadonlyMap<string, readonly Header[]> {
  const shards = new Map<string, Header[]>();
  for (const header of headers) {
    const name = SHARD_NAME.exec(header.name)?.[1];
    if (name === undefined) continue;
    const group = shards.get(name);
    if (group === undefined) shards.set(name, [header]);
    else group.push(header);
  }
  return shards;
}

function mergeShards<Header extends TensorHeader>(
  name: string,
  unordered: readonly Header[],
): MergedTensor<Header> {
  const parts = [...unordered].sort((a, b) => shardNumber(a) - shardNumber(b));
  checkComplete(name, parts.map(shardNumber));
  const [first] = parts;
  if (first === undefined) throw new PserverError("INTERNAL", `no shards of ${quoteName(name)}`);
  const row = JSON.stringify(first.shape.slice(1));
  let rows = 0;
  for (const part of parts) {
    if (part.dtype !== first.dtype) {
      throw differs(
        "BAD_DTYPE",
        part,
        `dtype ${first.dtype} as ${quoteName(first.name)}`,
        part.dtype,
      );
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

function shardNumber({ name }: TensorHeader): number {
  return Number(SHARD_NAME.exec(name)?.[2]);
}

/**
 * Checks that no shard is missing. Iterates over the shards, not over the numbers, because a shard may have
 * any number.
 */
function checkComplete(name: string, numbers: readonly number[]): void {
  const missing: number[] = [];
  let expected = 0;
  let missingCount = 0;
  for (const index of numbers) {
    missingCount += index - expected;
    while (expected < index && missing.length < LISTED_MAX) missing.push(expected++);
    expected = index + 1;
  }
  if (missingCount === 0) return;
  const listed = missing.map((index) => `${name}:sparse-${index}`);
  const more = missingCount > missing.length ? ` and ${missingCount - missing.length} more` : "";
  throw new PserverError(
    "MISSING_SHARD",
    `shards of ${quoteName(name)}: expected 0 to ${expected - 1}; missing ${listed.map(quoteName).join(", ")}${more}`,
    { parameter: name, expected, received: numbers.length, missing },
  );
}

function nameTaken(name: string): PserverError {
  return badName(name, `no parameter of this name beside shards ${quoteName(`${name}:sparse-…`)}`);
}

function differs(
  code: "BAD_DTYPE" | "BAD_SHAPE",
  part: TensorHeader,
  expected: string,
  received: string,
): PserverError {
  const details = { parameter: part.name };
  return mismatch(code, `shard ${quoteName(part.name)}`, expected, received, details);
}

/** What to save, and where. */
export interface SaveModelOptions {
  /** The model directory: nothing is written outside it. It must exist. */
  readonly directory: string;
  /** Where in the directory, as the user gave it; its ending chooses the format. */
  readonly path: string;
  readonly tensors: readonly TensorHeader[];
  /**
   * Yields the bytes of one of `tensors`, little-endian, in C order. Called once for each, one after the
   * other, in the order of the file. The memory of a chunk may be used again once the next is asked for.
   */
  readonly chunks: (header: TensorHeader, slot: number) => AsyncIterable<Uint8Array>;
  readonly metadata?: Metadata;
  /**
   * What optimizers keep of `tensors`, for a file that ends in `.safetensors`: `chunks` is then called for each slot, too,
   * with the header of the parameter; for the values slot is 0. Sparse shards are kept apart.
   */
  readonly optimizers?: SavedOptimizers;
  readonly signal?: AbortSignal;
}

/** A saved model: its absolute path, all its bytes on disk, and their layout. */
export interface WrittenModel {
  readonly file: string;
  readonly bytes: number;
  readonly format: ModelFormat;
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
export async function saveModel(options: SaveModelOptions): Promise<WrittenModel> {
  const { directory, path, signal, metadata = {} } = options;
  const { optimizers } = options;
  const merged = optimizers === undefined ? mergeSparse(options.tensors) : apart(options.tensors);
  checkMetadata(metadata);
  const file = await resolveModelPath(directory, path);
  const format = await formatFor(file, path);
  if (optimizers !== undefined && format !== "safetensors") throw noOptimizers(path);
  await checkTarget(file, format, path);
  throwIfAborted(signal);
  const parent = dirname(file);
  const topmostCreated = await makeDirectories(parent);
  try {
    await checkParent(parent, path);
    const model = outgoing(merged, metadata, options);
    return { file, bytes: await write(file, format, model), format };
  } catch (error) {
    if (topmostCreated !== undefined) await removeEmptyDirectories(parent, topmostCreated);
    throw error;
  }
}

/** Returns the format for a path; an existing directory is saved as a directory, whatever its name. */
async function formatFor(file: string, path: string): Promise<ModelFormat> {
  // `file` has its links resolved, but lacks a final slash of the path.
  const format = formatOf(path.endsWith("/") ? `${file}/` : file);
  if (format !== undefined) return format;
  if ((await kindOf(file)) === "directory") return "directory";
  throw unknownFormat(path);
}

/** Returns each tensor as one of the file. @throws as {@link checkHeaders}. */
function apart(headers: readonly TensorHeader[]): MergedTensor[] {
  checkHeaders(headers);
  return headers.map((header) => ({ header, parts: [header] }));
}

/** Makes the error for a file whose format holds values only. */
function noOptimizers(path: string): PserverError {
  return badPath("a name ending in .safetensors, for optimizer state", unknownName(path), path);
}

function outgoing(
  merged: readonly MergedTensor[],
  metadata: Metadata,
  { chunks, signal, optimizers }: SaveModelOptions,
): OutgoingModel {
  const partsByName = new Map(merged.map(({ header, parts }) => [header.name, parts]));
  const values = {
    tensors: merged.map(({ header }) => header),
    metadata,
    chunks: async function* (header: TensorHeader) {
      for (const part of partsByName.get(header.name) ?? []) {
        yield* exactly(part, abortable(chunks(part, 0), signal));
      }
    },
  };
  if (optimizers === undefined) return values;
  const slots = new Map(slotTensors(optimizers).map((slot) => [slot.header.name, slot]));
  return {
    tensors: [...values.tensors, ...[...slots.values()].map(({ header }) => header)],
    metadata: { ...metadata, [OPTIMIZER_KEY]: encodeOptimizers(optimizers) },
    chunks: async function* (header) {
      const found = slots.get(header.name);
      const [parameter] = (found && partsByName.get(found.parameter)) ?? [];
      if (found === undefined || parameter === undefined) yield* values.chunks(header);
      else yield* exactly(header, abortable(chunks(parameter, found.slot), signal));
    },
  };
}

async function write(file: string, format: ModelFormat, model: OutgoingModel): Promise<number> {
  if (format === "directory") return await writeDirectoryModel(file, model);
  return await writeFileAtomically(file, CONTENTS[format](model), FILE_MODES.model);
}

/** The writer of each format of one file. */
const CONTENTS: Readonly<
  Record<Exclude<ModelFormat, "directory">, (model: OutgoingModel) => FileContent>
> = {
  safetensors: writeSafetensors,
  npz: writeNpz,
  tar: writePaddleTar,
};

async function checkTarget(file: string, format: ModelFormat, path: string): Promise<void> {
  if (format === "directory") {
    await checkReplaceable(file);
  } else if ((await kindOf(file)) === "directory") {
    throw badPath("a name that is free or a file's", `the directory ${file}`, path);
  }
}

/** Checks that no directory above the file has become a link since they were resolved. */
async function checkParent(parent: string, path: string): Promise<void> {
  const real = await io("resolve", parent, realpath(parent));
  if (real !== parent) throw badPath(parent, `${real}, where a symbolic link leads`, path);
}
