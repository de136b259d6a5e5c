import { createRequire } from "node:module";
import type yaml from "yaml";
import type { PserverError } from "../errors.ts";
import { badConfig } from "./settings.ts";

/** Characters of a configuration as text. */
export const CONFIG_TEXT_MAX = 16_384;

/** Above the level of errors the library writes to the process itself. */
const OPTIONS = {
  version: "1.2",
  schema: "core",
  merge: false,
  resolveKnownTags: false,
  logLevel: "error",
} as const;

let library: typeof yaml | undefined;

/**
 * The value that a text says in JSON or YAML 1.2, of which JSON is a part. One document of maps, lists,
 * numbers, truth values and texts: aliases, tags of one's own and repeated keys are refused.
 * @throws BAD_CONFIG saying where the text is wrong.
 */
export function parseConfigText(text: string): unknown {
  if (text.length > CONFIG_TEXT_MAX) {
    throw badConfig("config", `text of at most ${CONFIG_TEXT_MAX} characters`, `${text.length}`);
  }
  // Loaded when first needed: few processes read texts, and each thread would pay for it.
  library ??= createRequire(import.meta.url)("yaml") as typeof yaml;
  const { parseDocument } = library;
  const document = readYaml(() => parseDocument(text, OPTIONS));
  // What is a warning to the library, such as a tag that it does not know, changes what is meant.
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) throw badText(wrong);
  return readYaml(() => document.toJS({ maxAliasCount: 0 }) as unknown);
}

/** The library throws for aliases, and may for text that nests deeper than the stack. */
function readYaml<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    throw badText(cause);
  }
}

function badText(cause: unknown): PserverError {
  const why = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : String(cause);
  return badConfig("config", "text in JSON or YAML", why);
}
