import { escapeName } from "../../protocol/names.ts";
import { memberName } from "../model-path.ts";

/** Path of a parameter's dataset, and the parameter's name if that differs. */
export interface DatasetPath {
  /** Names of groups and the dataset's, joined by `/`. */
  readonly path: string;
  /** Stored as JSON in an attribute of the dataset; absent if it equals the path. */
  readonly trueName?: string;
}

/**
 * The dataset of each parameter: its name as a path, with a group before each `/`, as in h5py. A
 * name is escaped if it is no path in HDF5, for example with `.` or nothing between slashes, or
 * leads through another parameter, as `a/b` beside `a`.
 */
export function datasetPaths(names: readonly string[]): DatasetPath[] {
  const taken = new Set(names);
  return names.map((name) => {
    const { name: path, trueName } = memberName(name);
    if (trueName !== undefined) return { path, trueName };
    const groups = groupsOf(name);
    // A first group with = may equal the escaped form of another name.
    const leadsThrough = groups[0]?.includes("=") || groups.some((group) => taken.has(group));
    return leadsThrough ? { path: escapeName(name), trueName: name } : { path };
  });
}

/** The groups that a path leads through, the outermost first. */
export function groupsOf(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, i) => names.slice(0, i + 1).join("/"));
}
