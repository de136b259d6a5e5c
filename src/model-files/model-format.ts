/** How a model is laid out on disk. */
export type ModelFormat = "safetensors" | "npz" | "tar" | "directory";

/**
 * The format that a file name asks for: `*.safetensors`, `*.npz`, `*.tar` in any case; every other
 * name is a directory with a file per parameter.
 */
export function formatOf(fileName: string): ModelFormat {
  const name = fileName.toLowerCase();
  if (name.endsWith(".safetensors")) return "safetensors";
  if (name.endsWith(".npz")) return "npz";
  if (name.endsWith(".tar")) return "tar";
  return "directory";
}
