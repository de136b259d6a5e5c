/** The published declarations, taken apart so that they compile beside ours in one file. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const FIXTURES = join(import.meta.dirname, "../../fixtures/seed-headers");

/** What a published header says. */
export interface SeedHeader {
  readonly macros: readonly string[];
  /** Types that may be declared twice, as they are. */
  readonly plainTypes: readonly string[];
  /** Structs and enums, which may not. */
  readonly bracedTypes: readonly string[];
  readonly functions: readonly string[];
}

/** Reads the published header of a revision. */
export async function readSeedHeader(revision: number): Promise<SeedHeader> {
  return parseSeedHeader(await readFile(join(FIXTURES, `revision-${revision}.h`), "utf8"));
}

/** Takes declarations apart. */
export function parseSeedHeader(text: string): SeedHeader {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "");
  const macros = code.match(/^#.*$/gm) ?? [];
  const statements = code.replace(/^#.*$/gm, "").match(/(?:\{[^}]*\}|[^;{])+;/g) ?? [];
  const trimmed = statements.map((statement) => statement.trim());
  const types = trimmed.filter((statement) => statement.startsWith("typedef"));
  return {
    macros,
    plainTypes: types.filter((type) => !type.includes("{")),
    bracedTypes: types.filter((type) => type.includes("{")),
    functions: trimmed.filter((statement) => !statement.startsWith("typedef")),
  };
}

/** The name that a function declaration declares. */
export function functionName(declaration: string): string {
  return /(\w+)\s*\(/.exec(declaration)?.[1] ?? "";
}

/**
 * A file that compiles only if `header` declares all that the seed does, and alike: macros, plain
 * types and functions are declared a second time; structs and enums under other names, and then
 * compared member by member.
 */
export function renderComparison(header: string, seed: SeedHeader): string {
  const renamed = seed.bracedTypes.flatMap(declaredNames);
  const uses = seed.functions.map((line) => `  (void)${functionName(line)};`);
  return [
    "#include <stddef.h>",
    `#include "${header}"`,
    "void declared_by_ours(void);",
    "void declared_by_ours(void) {",
    ...uses,
    "}",
    ...renamed.map((name) => `#define ${name} seed_${name}`),
    ...seed.bracedTypes,
    ...renamed.map((name) => `#undef ${name}`),
    ...seed.bracedTypes.flatMap((type) => comparisons(type, renamed)),
    ...seed.macros,
    "#ifdef __cplusplus",
    'extern "C" {',
    "#endif",
    ...seed.plainTypes,
    ...seed.functions,
    "#ifdef __cplusplus",
    "}",
    "#endif",
    "",
  ].join("\n");
}

/** Names of the types and enumerators of a struct or enum. */
function declaredNames(type: string): string[] {
  const names = type.slice(type.lastIndexOf("}") + 1).match(/\w+/g) ?? [];
  const enumerators = type.startsWith("typedef enum") ? bodyOf(type).match(/[A-Z]\w+/g) : [];
  return [...names, ...(enumerators ?? [])];
}

function comparisons(type: string, renamed: readonly string[]): string[] {
  const names: readonly string[] = type.slice(type.lastIndexOf("}") + 1).match(/\w+/g) ?? [];
  if (type.startsWith("typedef enum")) {
    return declaredNames(type).map((name) =>
      names.includes(name)
        ? assert(`sizeof(${name}) == sizeof(seed_${name})`)
        : assert(`(int)${name} == (int)seed_${name}`),
    );
  }
  const members = bodyOf(type)
    .split(";")
    .map((member) => /^\s*(.*?)\s*(\w+)\s*$/.exec(member))
    .filter((match) => match !== null);
  return names.flatMap((name) => [
    assert(`sizeof(${name}) == sizeof(seed_${name})`),
    ...members.flatMap(([, memberType = "", member]) => [
      assert(`offsetof(${name}, ${member}) == offsetof(seed_${name}, ${member})`),
      assertSameType(
        `member_${name}_${member}`,
        `((${name} *)0)->${member}`,
        renamed.includes(memberType) ? `*(${memberType} *)0` : `((seed_${name} *)0)->${member}`,
      ),
    ]),
  ]);
}

function bodyOf(type: string): string {
  return type.slice(type.indexOf("{") + 1, type.lastIndexOf("}"));
}

/** Fails to compile, in C and in C++, unless a constant condition holds. */
function assert(condition: string): string {
  return `typedef char checked[(${condition}) ? 1 : -1];`;
}

/** Fails to compile unless both are of one type: a variable cannot be declared with two. */
function assertSameType(name: string, left: string, right: string): string {
  return `extern __typeof__(${left}) ${name}; extern __typeof__(${right}) ${name};`;
}
