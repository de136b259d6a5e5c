import type { PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";
import { badPath } from "./model-path.ts";

/** How a model is laid out on disk. */
export type ModelFormat = "safetensors" | "npz" | "hdf5" | "tar" | "directory";

/** The endings of files that hold a model. */
export const MODEL_ENDINGS = [".safetensors", ".npz", ".h5", ".hdf5", ".tar"] as const;

/**
 * The format for a name, in upper or lower case: `*.safetensors`, `*.npz`, `*.h5` or `*.hdf5`,
 * `*.tar`; a directory with a file per parameter for a name that ends in `/` or holds no `.`; else
 * undefined.
 */
export function formatOf(fileName: string): ModelFormat | undefined {
  const name = fileName.toLowerCase();
  if (name.endsWith("/")) return "directory";
  if (name.endsWith(".safetensors")) return "safetensors";
  if (name.endsWith(".npz")) return "npz";
  if (name.endsWith(".h5") || name.endsWith(".hdf5")) return "hdf5";
  if (name.endsWith(".tar")) return "tar";
  return name.slice(name.lastIndexOf("/") + 1).includes(".") ? undefined : "directory";
}

/** The BAD_PATH for a name with an unknown ending. */
export function unknownFormat(path: string): PserverError {
  const expected = `a name ending in ${MODEL_ENDINGS.join(", ")}, or in / for a directory`;
  return badPath(expected, quoteName(path), path);
}
