import { escapeName, quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import { parseFileJson } from "./file-text.ts";
import type { TensorHeader } from "./tensor.ts";

/** Name of a tensor in an archive, and its true name if that differs. */
export interface MemberName {
  /** A name that every program unpacks below the directory it is told. */
  readonly name: string;
  /** Stored beside the member for reading; absent if it equals the name. */
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
 * The name of a tensor's member in an archive: the tensor's own, as numpy and PaddlePaddle expect.
 * It is escaped, as in subjects, if it could lead elsewhere when somebody unpacks it: absolute,
 * with `..`, `.` or nothing between slashes, with `\` or control characters. No two tensors get the
 * same name.
 */
export function memberName(name: string): MemberName {
  const isPath = name.split("/").some((part) => part === "" || part === "." || part === "..");
  const looksEscaped = name.includes("=") && ESCAPED.test(name);
  if (!isPath && !looksEscaped && !NEVER_PLAIN.test(name)) return { name };
  return { name: escapeName(name), trueName: name };
}

/**
 * The true name of a member, from the JSON text stored beside it, which names that were not escaped
 * lack. It is used as a parameter's name only, never as a path.
 * @throws BAD_FILE if the member's name is not the escaped form of it.
 */
export function trueNameOf(path: string, member: string, kept: string | undefined): string {
  if (kept === undefined) return member;
  const what = `true name of ${quoteName(member)}`;
  const name = parseFileJson(path, what, kept);
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
