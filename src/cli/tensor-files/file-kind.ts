/** How a file holds one tensor: numpy's array, JSON, or the bare little-endian bytes. */
export type TensorFileKind = "npy" | "json" | "raw";

/** The kind that a file's name asks for: `.npy`, `.json` in any case, else raw bytes. */
export function tensorFileKind(path: string): TensorFileKind {
  const name = path.toLowerCase();
  if (name.endsWith(".npy")) return "npy";
  return name.endsWith(".json") ? "json" : "raw";
}
