import { realpathSync } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { isAbsolute, join, resolve, sep } from "node:path";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { escapeName, quoteName } from "../protocol/names.ts";
import { errnoCode, fileError, io } from "../system/file-errors.ts";
import { badFile, parseFileJson } from "./file-text.ts";
import type { TensorHeader } from "./tensor-headers.ts";

/** Longest path: no model needs a longer one, and creating it costs the host time. */
const PATH_BYTES_MAX = 1_024;
const PATH_NAMES_MAX = 32;
const EXPECTED = `a relative path of at most ${PATH_NAMES_MAX} names separated by / and ${PATH_BYTES_MAX} bytes, without .., \\ and characters that are not printed, none beginning with ~, inside the model directory`;

/** What a terminal or a list of files would show as something else: control characters and directions of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/**
 * Resolves a path from a user to an absolute path inside `directory`, following symbolic links. The
 * last parts may not exist yet; nothing is created. Links may change after the check, so the model
 * directory must not be writable by people who may not write elsewhere.
 * @throws BAD_PATH if the path is empty, absolute, holds `..`, `\` or characters that are not printed, has
 * a name that begins with `~` (a home directory to a shell), more than 32 names or 1,024 bytes, names the model directory itself, or meets a symbolic link that leaves it or
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
 * Returns the error with paths relative to the model directory, for readers who may not know where that
 * directory is.
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

/** Makes a BAD_PATH about a path that a user gave. */
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
    !path.includes("\\") &&
    !UNPRINTABLE.test(path);
  const parts = valid ? path.split("/").filter((part) => part !== "" && part !== ".") : [];
  const isNamed = !parts.some((part) => part === ".." || part.startsWith("~"));
  const isInside = parts.length > 0 && parts.length <= PATH_NAMES_MAX && isNamed;
  if (!isInside) throw badPath(EXPECTED, quoteName(path), path);
  return parts;
}

/** Returns the real path of `file`; undefined if there is nothing of this name. */
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

/** Name of a tensor in an archive, and its true name if that differs. */
export interface MemberName {
  /** A name that every program unpacks below the chosen directory. */
  readonly name: string;
  /** The tensor's true name, stored beside the member; absent if it equals `name`. */
  readonly trueName?: string;
}

/** Control characters, and what some programs take for a separator or a drive. */
const NEVER_PLAIN = /[\p{Cc}\\]|^[A-Za-z]:\//u;

/**
 * The form of escaped names. A name of this form is escaped, too, or it could equal the escaped
 * form of another.
 */
const ESCAPED = /^(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+$/;

/**
 * Names a tensor's member in an archive: by the tensor's own name, as numpy and PaddlePaddle expect. The name
 * is escaped, as in subjects, if unpacking it could write elsewhere: if it is absolute, has `..`, `.` or
 * nothing between slashes, or has `\` or control characters. No two tensors get the same name.
 */
export function memberName(name: string): MemberName {
  const isPath = name.split("/").some((part) => part === "" || part === "." || part === "..");
  const looksEscaped = name.includes("=") && ESCAPED.test(name);
  if (!isPath && !looksEscaped && !NEVER_PLAIN.test(name)) return { name };
  return { name: escapeName(name), trueName: name };
}

/**
 * Returns the true name of a member. `storedName` is the JSON text stored beside the member, undefined for a name
 * that was not escaped. The true name is used as a parameter's name only, never as a path.
 * @throws BAD_FILE if the member's name is not the escaped form of it.
 */
export function trueNameOf(path: string, member: string, storedName: string | undefined): string {
  if (storedName === undefined) return member;
  const what = `true name of ${quoteName(member)}`;
  const name = parseFileJson(path, what, storedName);
  if (typeof name === "string" && name !== "" && isNamed(member, name)) return name;
  throw badFile(path, what, "the name that it was escaped from", quoteName(name));
}

/** Checks that each name occurs once. @throws BAD_FILE. */
export function checkNamesApart(path: string, headers: Iterable<TensorHeader>): void {
  const names = new Set<string>();
  for (const { name } of headers) {
    if (names.has(name)) throw badFile(path, "names", "each once", quoteName(name));
    names.add(name);
  }
}

function isNamed(member: string, name: string): boolean {
  try {
    return escapeName(name) === member;
  } catch {
    // No parameter can have this name, so no member was made of it.
    return false;
  }
}

/** How a model is laid out on disk. */
export type ModelFormat = "safetensors" | "npz" | "tar" | "directory";

/** The endings of files that hold a model. */
export const MODEL_ENDINGS = [".safetensors", ".npz", ".tar"] as const;

/** The endings of files that are read as a model. */
export const READ_ENDINGS = [
  ...MODEL_ENDINGS,
  ".tar.gz",
  ".tgz",
  ".safetensors.index.json",
] as const;

/**
 * Returns the format for a name, in upper or lower case: `*.safetensors`, `*.npz`, `*.tar`; a directory with
 * a file per parameter for a name that ends in `/` or holds no `.`; else undefined.
 */
export function formatOf(fileName: string): ModelFormat | undefined {
  const name = fileName.toLowerCase();
  if (name.endsWith("/")) return "directory";
  if (name.endsWith(".safetensors")) return "safetensors";
  if (name.endsWith(".npz")) return "npz";
  if (name.endsWith(".tar")) return "tar";
  return name.slice(name.lastIndexOf("/") + 1).includes(".") ? undefined : "directory";
}

/** Makes the BAD_PATH for a name with an unknown ending. */
export function unknownFormat(path: string): PserverError {
  const expected = `a name ending in ${MODEL_ENDINGS.join(", ")}, or in / for a directory`;
  return badPath(expected, unknownName(path), path);
}

/** Describes the name of a file of no known format, for messages; for HDF5 also names what writes it. */
export function unknownName(path: string): string {
  const name = quoteName(path);
  if (!/\.(?:h5|hdf5)$/i.test(path)) return name;
  return `${name}, but the server has no HDF5; in Python, server_save_to_hdf5 of legion.Client writes it`;
}
