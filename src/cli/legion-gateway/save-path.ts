import { posix } from "node:path";

const ENDINGS = [".h5", ".hdf5"];

/**
 * The path below the model directory for a path of an old script, which may lead anywhere on the server's
 * machine: without the leading `/`, with `..` leading no higher than the directory. Legion saved HDF5
 * only, so `.h5` is added unless the path ends in `.h5` or `.hdf5`.
 */
export function savePath(path: string): string {
  const below = posix.normalize(`/${path}`).replace(/^\/+|\/+$/g, "");
  const isHdf5 = ENDINGS.some((ending) => below.toLowerCase().endsWith(ending));
  return isHdf5 ? below : `${below || "model"}.h5`;
}
