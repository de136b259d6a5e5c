import { realpathSync } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { isAbsolute, join, resolve, sep } from "node:path";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { quoteName } from "../protocol/names.ts";
import { errnoCode, fileError, io } from "../system/file-errors.ts";

/** No model needs longer or deeper paths, and creating them costs the host time. */
const PATH_BYTES_MAX = 1_024;
const PATH_NAMES_MAX = 32;
const EXPECTED = `a relative path of at most ${PATH_NAMES_MAX} names separated by / and ${PATH_BYTES_MAX} bytes, without .. and \\, inside the model directory`;

/**
 * Resolves a path from a user to an absolute path inside `directory`, following symbolic links. The
 * last parts may not exist yet; nothing is created. Links may change after the check, so the model
 * directory must not be writable by people who may not write elsewhere.
 * @throws BAD_PATH if the path is empty, absolute, holds `..`, `\` or NUL, has more than 32 names
 * or 1,024 bytes, names the model directory itself, or meets a symbolic link that leaves it or
 * leads nowhere; IO if `directory` is absent.
 */
export async function resolveModelPath(directory: string, path: string): Promise<string> {
  const parts = partsOf(path);
  const root = await io("resolve the model directory", directory, realpath(directory));
  let current = root;
  for (const [index, part] of parts.entries()) {
    const real = await realPathOf(join(current, part), path);
    if (real === undefined) return join(current, ...parts.slice(index));
    if (real !== root && !real.startsWith(root.endsWith(sep) ? root : root + sep)) {
      throw badPath(EXPECTED, `${quoteName(path)}, where a symbolic link leads out`, path);
    }
    current = real;
  }
  if (current === root) throw badPath(EXPECTED, `${quoteName(path)}, the directory itself`, path);
  return current;
}

/**
 * The same error with paths relative to the model directory, for somebody who may not know where
 * that directory is.
 */
export function relativeError(thrown: unknown, directory: string): PserverError {
  const { code, message, details } = ensureError(thrown);
  const root = resolve(directory);
  const roots = [directory, root, realDirectory(root)].sort((a, b) => b.length - a.length);
  const relative = (text: string): string =>
    roots.reduce(
      (shown, known) => shown.replaceAll(`${known}${sep}`, "").replaceAll(known, "."),
      text,
    );
  const entries = Object.entries(details).map(([key, value]) => {
    return [key, typeof value === "string" ? relative(value) : value];
  });
  const cause = { cause: thrown };
  return new PserverError(code, relative(message), Object.fromEntries(entries), cause);
}

function realDirectory(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    // The directory is gone, so no path was resolved in it.
    return directory;
  }
}

/** A BAD_PATH about a path a user gave. */
export function badPath(
  expected: string,
  received: string,
  path: unknown,
  cause?: unknown,
): PserverError {
  return new PserverError(
    "BAD_PATH",
    `model path: expected ${expected}; received ${received}`,
    { expected, received: path },
    cause === undefined ? undefined : { cause },
  );
}

function partsOf(path: string): string[] {
  const valid =
    typeof path === "string" &&
    Buffer.byteLength(path) <= PATH_BYTES_MAX &&
    path.isWellFormed() &&
    !isAbsolute(path) &&
    !/[\0\\]/.test(path);
  const parts = valid ? path.split("/").filter((part) => part !== "" && part !== ".") : [];
  const isInside = parts.length > 0 && parts.length <= PATH_NAMES_MAX && !parts.includes("..");
  if (!isInside) throw badPath(EXPECTED, quoteName(path), path);
  return parts;
}

/** The real path of `file`, or `undefined` if there is nothing of this name. */
async function realPathOf(file: string, path: string): Promise<string | undefined> {
  try {
    await lstat(file);
  } catch (error) {
    if (errnoCode(error) === "ENOENT") return undefined;
    if (errnoCode(error) === "ENOTDIR") {
      throw badPath(
        "directories before the last name",
        `${quoteName(path)}, through a file`,
        path,
        error,
      );
    }
    throw fileError("examine", file, error);
  }
  try {
    return await realpath(file);
  } catch (error) {
    const errno = errnoCode(error);
    if (errno === "ENOENT" || errno === "ELOOP") {
      throw badPath(
        EXPECTED,
        `${quoteName(path)}, where a symbolic link leads nowhere`,
        path,
        error,
      );
    }
    throw fileError("resolve", file, error);
  }
}
