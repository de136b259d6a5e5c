import { extname } from "node:path";
import { mismatch } from "../../protocol/mismatch.ts";

/** Format of a file with one tensor: numpy's `.npy`, JSON, or the bare little-endian bytes. */
export type TensorFileKind = "npy" | "json" | "raw";

const KINDS: Readonly<Record<string, TensorFileKind>> = {
  ".npy": "npy",
  ".json": "json",
  ".bin": "raw",
  ".raw": "raw",
  "": "raw",
};

/**
 * The format for the ending of a file's name, in upper or lower case; raw bytes without an ending.
 * @throws BAD_VALUE for another ending.
 */
export function tensorFileKind(path: string): TensorFileKind {
  const kind = KINDS[extname(path).toLowerCase()];
  if (kind !== undefined) return kind;
  const expected = "a file ending in .npy, .json, .bin or .raw, or without an ending";
  throw mismatch("BAD_VALUE", "tensor file", expected, JSON.stringify(path));
}
