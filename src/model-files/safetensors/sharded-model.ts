import { dirname, join } from "node:path";
import { quoteName } from "../../protocol/names.ts";
import { badFile, isJsonObject, parseBoundedJson } from "../file-text.ts";
import { ModelFile } from "../model-file.ts";
import {
  DESCRIPTION_BYTES_MAX,
  type IncomingModel,
  TENSORS_MAX,
  type TensorSource,
} from "../tensor-headers.ts";
import { readSafetensors } from "./safetensors.ts";

/** The ending of the index of a model in several safetensors files, as Hugging Face writes it. */
export const INDEX_ENDING = ".safetensors.index.json";

/** Most files of one model. */
const FILES_MAX = 10_000;

const BOUNDS = { depth: 8, containers: 1_000, commas: TENSORS_MAX + 1_000 } as const;

/** A model in several files, and its files. */
export interface ShardedModel {
  readonly model: IncomingModel;
  close(): Promise<void>;
}

/**
 * Opens a model that an index divides into several safetensors files beside it: `weight_map` names the file of each
 * tensor. The tensors are in the order of the files. The caller closes them.
 * @throws BAD_FILE if index and files do not have the same tensors; IO for a file that is not there.
 */
export async function openSharded(index: ModelFile): Promise<ShardedModel> {
  const { path } = index;
  const fileOf = await readIndex(index);
  const files: ModelFile[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(files.map((file) => file.close()));
  };
  try {
    const tensors: TensorSource[] = [];
    const skipped: IncomingModel["skipped"][number][] = [];
    const metadata: Record<string, string>[] = [];
    for (const name of new Set(fileOf.values())) {
      const file = await ModelFile.open(join(dirname(path), name));
      files.push(file);
      const part = await readSafetensors(file);
      if (part.optimizers !== undefined) {
        throw badFile(file.path, "model", "values only, of a model in several files", "more");
      }
      tensors.push(...part.tensors);
      skipped.push(...part.skipped);
      metadata.push(part.metadata);
      const held = [
        ...part.tensors.map(({ header }) => header.name),
        ...part.skipped.map((each) => each.name),
      ];
      const stray = held.find((tensor) => fileOf.get(tensor) !== name);
      if (stray !== undefined) {
        const expected = `${quoteName(stray)} in ${quoteName(fileOf.get(stray) ?? "no file")}`;
        throw badFile(path, "weight_map", expected, `it is in ${quoteName(name)}`);
      }
    }
    const found = new Set([
      ...tensors.map(({ header }) => header.name),
      ...skipped.map((each) => each.name),
    ]);
    for (const [tensor, name] of fileOf) {
      if (found.has(tensor)) continue;
      throw badFile(
        path,
        "weight_map",
        `${quoteName(tensor)} in ${quoteName(name)}`,
        "no such tensor",
      );
    }
    return { model: { tensors, skipped, metadata: Object.assign({}, ...metadata) }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Reads the name of the file of each tensor. */
async function readIndex(index: ModelFile): Promise<ReadonlyMap<string, string>> {
  const { path, bytes } = index;
  if (bytes > DESCRIPTION_BYTES_MAX) {
    throw badFile(path, "index", `at most ${DESCRIPTION_BYTES_MAX} bytes`, bytes);
  }
  const text = await index.read(0, bytes, "index");
  const { value } = parseBoundedJson(path, "index", text, BOUNDS);
  const map = isJsonObject(value) ? value["weight_map"] : undefined;
  if (!isJsonObject(map) || Object.keys(map).length === 0) {
    throw badFile(path, "index", "a weight_map with files by tensor", "none");
  }
  const entries = Object.entries(map).map(([tensor, file]): [string, string] => {
    // A file of the same directory: an index names no other place.
    if (typeof file === "string" && /^[^/\\\0]+\.safetensors$/.test(file)) return [tensor, file];
    const received = JSON.stringify(file).slice(0, 100);
    throw badFile(
      path,
      `file of ${quoteName(tensor)}`,
      "the name of a .safetensors file",
      received,
    );
  });
  const fileOf = new Map(entries);
  const files = new Set(fileOf.values()).size;
  if (files > FILES_MAX) throw badFile(path, "files", `at most ${FILES_MAX}`, files);
  return fileOf;
}
