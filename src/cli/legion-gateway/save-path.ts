import { posix } from "node:path";

const ENDINGS = [".h5", ".hdf5"];

/**
 * Where below the model directory a save of an old script goes, to which Legion gave any path of the
 * server's machine: the same names without the leading `/`, `..` going no higher than the directory; with
 * `.h5` unless it ends in that or in `.hdf5`, for Legion saved nothing else.
 */
export function savePath(path: string): string {
  const below = posix.normalize(`/${path}`).replace(/^\/+|\/+$/g, "");
  const isHdf5 = ENDINGS.some((ending) => below.toLowerCase().endsWith(ending));
  return isHdf5 ? below : `${below || "model"}.h5`;
}
