import { extname } from "node:path";
import { PserverError } from "../../protocol/errors.ts";

/** How a file holds one tensor: numpy's array, JSON, or the bare little-endian bytes. */
export type TensorFileKind = "npy" | "json" | "raw";

const KINDS: Readonly<Record<string, TensorFileKind>> = {
  ".npy": "npy",
  ".json": "json",
  ".bin": "raw",
  ".raw": "raw",
  "": "raw",
};

/**
 * The kind that a file's name asks for by its ending, in any case; without an ending raw bytes.
 * @throws BAD_VALUE for another ending: the file would not be what it says.
 */
export function tensorFileKind(path: string): TensorFileKind {
  const kind = KINDS[extname(path).toLowerCase()];
  if (kind !== undefined) return kind;
  const expected = "a file ending in .npy, .json, .bin or .raw, or without an ending";
  const received = JSON.stringify(path);
  throw new PserverError("BAD_VALUE", `tensor file: expected ${expected}; received ${received}`, {
    expected,
    received,
  });
}
