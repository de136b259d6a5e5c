import { escapeName, quoteName } from "../protocol/names.ts";
import { badFile } from "./bad-file.ts";
import { parseFileJson } from "./file-text.ts";
import type { TensorSource } from "./tensor.ts";

/** What an archive calls a tensor, and its true name where that is another. */
export interface MemberName {
  /** A name that every program unpacks below the directory it is told. */
  readonly name: string;
  /** Kept beside the member, for reading it back; absent if it is the same. */
  readonly trueName?: string;
}

/** Controls and what some programs take for a separator or a drive. */
const NEVER_PLAIN = /[\p{Cc}\\]|^[A-Za-z]:\//u;

/** The form of escaped names: were such a name kept as it is, it could meet another that is escaped. */
const ESCAPED = /^(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+$/;

/**
 * The name of a tensor's member in an archive: the tensor's, as numpy and PaddlePaddle expect it, unless
 * it would be a path that leads elsewhere when somebody unpacks: absolute, with `..`, `.` or nothing
 * between slashes, with `\` or control characters. That is escaped as in subjects. No two names meet.
 */
export function memberName(name: string): MemberName {
  const isPath = name.split("/").some((part) => part === "" || part === "." || part === "..");
  const looksEscaped = name.includes("=") && ESCAPED.test(name);
  if (!isPath && !looksEscaped && !NEVER_PLAIN.test(name)) return { name };
  return { name: escapeName(name), trueName: name };
}

/**
 * The true name of a member, from what is kept beside it: JSON text, or nothing for a name that was not
 * escaped. A name of a file is a parameter's name and never a path here, whatever it holds.
 * @throws BAD_FILE if the text is not the name that the member's was escaped from.
 */
export function trueNameOf(path: string, member: string, kept: string | undefined): string {
  if (kept === undefined) return member;
  const what = `true name of ${quoteName(member)}`;
  const name = parseFileJson(path, what, kept);
  if (typeof name === "string" && name !== "" && isNamed(member, name)) return name;
  throw badFile(path, what, "the name that it was escaped from", quoteName(name));
}

/** Refuses tensors of one file with one name. @throws BAD_FILE. */
export function checkNamesApart(path: string, tensors: readonly TensorSource[]): void {
  const names = new Set<string>();
  for (const { header } of tensors) {
    if (names.has(header.name)) throw badFile(path, "names", "each once", quoteName(header.name));
    names.add(header.name);
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
