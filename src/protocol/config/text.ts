import { createRequire } from "node:module";
import type yaml from "yaml";
import type { PserverError } from "../errors.ts";
import { badConfig } from "./settings.ts";

/** Characters of a configuration as text. */
export const CONFIG_TEXT_MAX = 16_384;

/** Depth of lists and maps in a configuration as text: that of messages. */
export const CONFIG_DEPTH_MAX = 16;

/** Words, signs, spaces and line ends of a configuration as text; the largest has some hundred. */
export const CONFIG_TOKENS_MAX = 2_048;

/** What a level of the text is to the library. */
const COLLECTIONS: ReadonlySet<string> = new Set(["block-map", "block-seq", "flow-collection"]);

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
  const yamlLibrary = library;
  checkStructure(yamlLibrary, text);
  const document = readYaml(() => yamlLibrary.parseDocument(text, OPTIONS));
  // What is a warning to the library, such as a tag that it does not know, changes what is meant.
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) throw badText(wrong);
  return readYaml(() => document.toJS({ maxAliasCount: 0 }) as unknown);
}

/**
 * Looks at how deep and how large a text is before it is read as a whole. The library's tokens and its
 * table of what is open take no more stack for a deep text. What it makes of them does, and where the
 * stack ends within a regular expression V8 ends the process; and the time that errors and keys take
 * grows with the square of their number.
 * @throws BAD_CONFIG naming the limit.
 */
function checkStructure({ Lexer, Parser }: typeof yaml, text: string): void {
  const parser = new Parser();
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    if (++tokens > CONFIG_TOKENS_MAX) {
      throw badConfig("config", `text of at most ${CONFIG_TOKENS_MAX} words and signs`, "more");
    }
    // Only the table of what is open is of interest: the reading proper makes the output again.
    Array.from(parser.next(token));
    const depth = parser.stack.filter(({ type }) => COLLECTIONS.has(type)).length;
    if (depth <= CONFIG_DEPTH_MAX) continue;
    throw badConfig("config", `lists and maps nested at most ${CONFIG_DEPTH_MAX} deep`, depth);
  }
}

/** The library throws for aliases. */
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
