import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { io } from "../system/file-errors.ts";
import { abortable, throwIfAborted } from "./abortable.ts";
import {
  FILE_MODES,
  type FileContent,
  makeDirectories,
  removeEmptyDirectories,
  writeFileAtomically,
} from "./atomic-write.ts";
import { checkReplaceable, kindOf, writeDirectoryModel } from "./directory-model.ts";
import { writeHdf5 } from "./hdf5/hdf5.ts";
import { type MergedTensor, mergeSparse } from "./merge-sparse.ts";
import { checkMetadata, type Metadata } from "./metadata.ts";
import { formatOf, type ModelFormat, unknownFormat } from "./model-format.ts";
import { badPath, resolveModelPath } from "./model-path.ts";
import { writeNpz } from "./npz.ts";
import { writePaddleTar } from "./paddle-tar.ts";
import { writeSafetensors } from "./safetensors-writer.ts";
import { exactly, type OutgoingModel, type TensorHeader } from "./tensor.ts";

/** What to save, and where. */
export interface SaveModelOptions {
  /** The model directory: nothing is written outside it. It must exist. */
  readonly directory: string;
  /** Where in it, as the user gave it; its ending chooses the format. */
  readonly path: string;
  readonly tensors: readonly TensorHeader[];
  /**
   * The bytes of one of `tensors`, little-endian, in C order; asked for once each, one after the
   * other, in the order of the file. A chunk may be used again once the next is asked for.
   */
  readonly chunks: (header: TensorHeader) => AsyncIterable<Uint8Array>;
  readonly metadata?: Metadata;
  readonly signal?: AbortSignal;
}

/** A saved model: its absolute path, all its bytes on disk, and their layout. */
export interface SavedModel {
  readonly file: string;
  readonly bytes: number;
  readonly format: ModelFormat;
}

/**
 * Writes a model in the format of its name: `*.safetensors`, `*.npz`, `*.h5` or `*.hdf5`, `*.tar`
 * (PaddlePaddle's `model.tar`), or a directory for a name that ends in `/`, holds no `.`, or is one already. Only the
 * user who saves it can read it. Sparse shards are merged. What was there before is replaced when
 * everything new is on disk, and stays if anything fails; directories that were made for it are removed
 * then. Memory holds a chunk at a time. A process
 * that is killed may leave a `.pserver-save-….tmp` beside the model.
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
export async function saveModel(options: SaveModelOptions): Promise<SavedModel> {
  const { directory, path, signal, metadata = {} } = options;
  const merged = mergeSparse(options.tensors);
  checkMetadata(metadata);
  const file = await resolveModelPath(directory, path);
  const format = await formatFor(file, path);
  await checkTarget(file, format, path);
  throwIfAborted(signal);
  const parent = dirname(file);
  const made = await makeDirectories(parent);
  try {
    await checkParent(parent, path);
    const model = outgoing(merged, metadata, options);
    return { file, bytes: await write(file, format, model), format };
  } catch (error) {
    if (made !== undefined) await removeEmptyDirectories(parent, made);
    throw error;
  }
}

/** The format for a path; an existing directory is saved as a directory, whatever its name. */
async function formatFor(file: string, path: string): Promise<ModelFormat> {
  // `file` has its links resolved, but lacks a final slash of the path.
  const format = formatOf(path.endsWith("/") ? `${file}/` : file);
  if (format !== undefined) return format;
  if ((await kindOf(file)) === "directory") return "directory";
  throw unknownFormat(path);
}

function outgoing(
  merged: readonly MergedTensor[],
  metadata: Metadata,
  { chunks, signal }: SaveModelOptions,
): OutgoingModel {
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

async function write(file: string, format: ModelFormat, model: OutgoingModel): Promise<number> {
  if (format === "directory") return await writeDirectoryModel(file, model);
  return await writeFileAtomically(file, CONTENTS[format](model), FILE_MODES.model);
}

/** The content of a file of each format. */
const CONTENTS: Readonly<
  Record<Exclude<ModelFormat, "directory">, (model: OutgoingModel) => FileContent>
> = {
  safetensors: writeSafetensors,
  npz: writeNpz,
  hdf5: (model) => (handle, path) => writeHdf5(path, handle, model),
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
