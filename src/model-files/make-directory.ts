import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { errnoCode } from "../system/file-errors.ts";

/**
 * Makes a directory and the missing ones above it. (Node's recursive `mkdir` loops for ever if
 * creating a name in an existing directory fails with ENOENT, as below `/proc`.)
 * @returns the first that was made, undefined if all existed.
 * @throws the system's error.
 */
export async function makeDirectory(path: string): Promise<string | undefined> {
  const directory = resolve(path);
  try {
    await mkdir(directory);
    return directory;
  } catch (error) {
    if (errnoCode(error) === "ENOENT" && dirname(directory) !== directory) {
      const first = await makeDirectory(dirname(directory));
      await mkdirUnlessThere(directory);
      return first ?? directory;
    }
    if (!(await isDirectory(directory))) throw error;
    return undefined;
  }
}

/** As `mkdir`, but another process may have made it meanwhile. */
async function mkdirUnlessThere(directory: string): Promise<void> {
  try {
    await mkdir(directory);
  } catch (error) {
    if (!(await isDirectory(directory))) throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // The caller reports its own error.
    return false;
  }
}
