import { escapeName } from "../../protocol/names.ts";
import { memberName } from "../member-name.ts";

/** Where the dataset of a parameter lies, and the parameter's name where that is another. */
export interface DatasetPath {
  /** Names of groups and the dataset's, joined by `/`. */
  readonly path: string;
  /** Kept as an attribute of the dataset, as JSON; absent if it is the path. */
  readonly trueName?: string;
}

/**
 * The dataset of each parameter: the one of its name, groups for what stands before each `/`, as h5py makes
 * of a name. A name is escaped if it is no path of HDF5, with `.` or nothing between slashes for
 * instance, or leads through another parameter, as `a/b` beside `a`.
 */
export function datasetPaths(names: readonly string[]): DatasetPath[] {
  const taken = new Set(names);
  return names.map((name) => {
    const { name: path, trueName } = memberName(name);
    if (trueName !== undefined) return { path, trueName };
    const groups = groupsOf(name);
    // With a = the first group may be what another name is escaped to.
    const leadsThrough = groups[0]?.includes("=") || groups.some((group) => taken.has(group));
    return leadsThrough ? { path: escapeName(name), trueName: name } : { path };
  });
}

/** The groups that a path leads through, the outermost first. */
export function groupsOf(path: string): string[] {
  const names = path.split("/");
  return names.slice(1).map((_, i) => names.slice(0, i + 1).join("/"));
}
