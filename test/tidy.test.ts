// Proves the house rules that no compiler or linter checks, by reading every file of the checkout
// that is not built or fetched: size, doc comments, the one direction of imports, no console in
// the library, clean text, nothing of the machine it was written on, each dependency explained.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join, relative, resolve, sep } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");

/** What .gitignore names, and files that are data of tests. */
const SKIPPED = new Set([
  ".git",
  ".pserver",
  ".tools",
  "build",
  "corpus",
  "coverage",
  "dist",
  "fixtures",
  "node_modules",
  "vectors",
  "__pycache__",
  ".mypy_cache",
  ".pytest_cache",
  ".hypothesis",
]);

const TEXT = new Set([
  "",
  ".c",
  ".cc",
  ".conf",
  ".h",
  ".json",
  ".md",
  ".py",
  ".service",
  ".sh",
  ".toml",
  ".tpl",
  ".ts",
  ".yaml",
  ".yml",
]);

const LINES_MAX = 900;

/** Files of TypeScript or C in a folder: more are too many to find one at a glance. */
const FILES_MAX = 18;

/** What each directory of src may import besides itself. A new one must be given its place here. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  metrics: [],
  system: ["protocol"],
  transport: ["protocol", "system"],
  client: ["protocol", "transport"],
  actors: ["protocol", "system", "transport", "metrics", "model-files"],
  "model-files": ["protocol", "system"],
  broker: ["protocol", "system", "model-files"],
  history: ["protocol", "system", "transport", "client", "actors", "model-files"],
  http: ["protocol", "system", "transport", "metrics", "client", "actors", "history"],
  cli: [
    ...["protocol", "system", "transport", "client", "actors", "model-files", "broker"],
    ...["history", "http"],
  ],
};

/** What must not import what: history and a lifecycle go without an owner of shards, and an owner without them. */
const NEVER: readonly (readonly [from: string, target: string])[] = [
  ["src/history/", "src/actors/owner/"],
  ["src/history/", "src/actors/host/"],
  ["src/actors/owner/", "src/actors/lifecycle/"],
  ["src/actors/lifecycle/", "src/actors/owner/"],
  ...["job", "lifecycle", "owner", "host", "recovery"].flatMap((above) =>
    ["fold", "kernel", "journal"].map(
      (below) => [`src/actors/${below}/`, `src/actors/${above}/`] as const,
    ),
  ),
];

/** Names that say nothing about what a file holds. */
const EMPTY_NAMES = /^(utils?|helpers?|common|misc|shared)\b/;

/** Directories of one person, and hosts that packages are fetched from. */
const MACHINE = [
  /(?<!\w)\/(?:home|Users)\/\w/,
  /(?<!\w)\/root\//,
  /\bregistry\.[a-z]+\.(?:com|dev|io|org)\b/,
  /^\s*"resolved"\s*:/,
];

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;

interface SourceFile {
  /** Relative to the checkout, with `/`. */
  readonly path: string;
  readonly lines: readonly string[];
}

const files = listFiles(ROOT).map(readSource);
const sources = files.filter((file) => file.path.startsWith("src/"));
const modules = sources.filter(
  (file) => file.path.endsWith(".ts") && !file.path.includes("/assembly/"),
);

test("the rules see the files", () => {
  expect(files.map((file) => file.path)).toContain("package.json");
  expect(modules.length).toBeGreaterThan(20);
});

describe("sources", () => {
  test(`have at most ${LINES_MAX} lines`, () => {
    const long = sources.filter((file) => file.lines.length > LINES_MAX);
    expect(long.map((file) => `${file.path}: ${file.lines.length}`)).toEqual([]);
  });

  test(`are at most ${FILES_MAX} in a folder`, () => {
    const folders = new Map<string, number>();
    for (const { path } of sources.filter((file) => /\.(?:ts|c|h)$/.test(file.path))) {
      folders.set(dirname(path), (folders.get(dirname(path)) ?? 0) + 1);
    }
    expect([...folders].filter(([, count]) => count > FILES_MAX)).toEqual([]);
  });

  test("have a doc comment, or begin with a comment if they only re-export", () => {
    const bare = modules.filter(
      (file) => !file.lines[0]?.startsWith("/") && !file.lines.some((line) => line.includes("/**")),
    );
    expect(bare.map((file) => file.path)).toEqual([]);
  });

  test("are named after what they hold", () => {
    const vague = files.filter((file) => EMPTY_NAMES.test(file.path.split("/").at(-1) ?? ""));
    expect(vague.map((file) => file.path)).toEqual([]);
  });

  test("print only in the command", () => {
    const library = modules.filter((file) => !file.path.startsWith("src/cli/"));
    expect(find(library, (line) => /^\s*[^*/\s].*\bconsole\./.test(line))).toEqual([]);
  });

  test("import in one direction", () => {
    const wrong = modules.flatMap((file) =>
      importsOf(file)
        .filter((target) => !mayImport(file.path, target))
        .map((target) => `${file.path} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  test("import in no circle, not even types", () => {
    const circles = circlesIn(new Map(modules.map((file) => [file.path, importsOf(file)])));
    expect(circles).toEqual([]);
  });
});

test("a circle is found, however long", () => {
  const graph = { a: ["b", "c"], b: ["d"], c: ["d"], d: ["e"], e: ["b", "b.json"] };
  expect(circlesIn(new Map(Object.entries(graph)))).toEqual([["b", "d", "e"]]);
});

test("tests name no process by number but through test/support/signals.ts", () => {
  const tests = files.filter(
    ({ path }) => /^test\/.*\.ts$/.test(path) && path !== "test/support/signals.ts",
  );
  // A process may end itself.
  const sends = (line: string) => /\bprocess\.kill\((?!process\.pid\b)/.test(line);
  expect(find(tests, sends)).toEqual([]);
});

describe("all files", () => {
  test("hold no control characters and no blanks at the ends of lines", () => {
    expect(find(files, (line) => CONTROL.test(line) || /[ \t]$/.test(line))).toEqual([]);
  });

  test("name nothing of the machine they were written on", () => {
    expect(find(files, (line) => MACHINE.some((pattern) => pattern.test(line)))).toEqual([]);
  });
});

test("docs/internals/dependencies.md explains every dependency at its version", () => {
  const text = readSource(join(ROOT, "docs", "internals", "dependencies.md")).lines.join("\n");
  const manifest = JSON.parse(readSource(join(ROOT, "package.json")).lines.join("\n"));
  const named = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(named.length).toBeGreaterThan(5);
  const missing = named.filter(([name, version]) => !text.includes(`\`${name}\` ${version}`));
  expect(missing).toEqual([]);
});

test("every package that users get runs on the oldest Node.js that this one accepts", () => {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const packages: [string, { dev?: true; engines?: { node?: string } }][] = Object.entries(
    lock.packages,
  );
  const [major = 0, minor = 0] = numbersOf(lock.packages[""].engines.node);
  expect([major, minor]).toEqual([20, 19]);
  const accepts = (clause: string): boolean => {
    const [least = 0, point = 0] = numbersOf(clause);
    if (clause.startsWith("^")) return least === major && point <= minor;
    return least < major || (least === major && point <= minor);
  };
  const users = packages.filter(([name, { dev }]) => name !== "" && dev !== true);
  expect(users.length).toBeGreaterThan(20);
  const refusing = users.filter(([, { engines }]) => {
    const clauses = (engines?.node ?? "*").split("||").map((clause) => clause.trim());
    return !clauses.some(accepts);
  });
  expect(refusing).toEqual([]);
});

/** The numbers of a version in a range such as `>= 20.19`; none for `*`. */
function numbersOf(range: string): number[] {
  return (/\d+(?:\.\d+)*/.exec(range)?.[0] ?? "").split(".").map(Number);
}

function listFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    // A directory that is being compiled into is .dist-new or .build-new.
    if (SKIPPED.has(entry.name) || entry.name.endsWith("-new")) return [];
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return listFiles(path);
    return entry.isFile() && TEXT.has(extname(entry.name)) ? [path] : [];
  });
}

function readSource(path: string): SourceFile {
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return { path: relative(ROOT, path).split(sep).join("/"), lines };
}

/** `path:line` of each line that `matches`. */
function find(among: readonly SourceFile[], matches: (line: string) => boolean): string[] {
  return among.flatMap((file) =>
    file.lines.flatMap((line, i) => (matches(line) ? [`${file.path}:${i + 1}: ${line}`] : [])),
  );
}

/** Files that a module imports, by relative specifiers. */
function importsOf(file: SourceFile): string[] {
  const specifiers = file.lines.join("\n").matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g);
  return [...specifiers].map((match) =>
    relative(ROOT, resolve(ROOT, dirname(file.path), match[1] ?? ""))
      .split(sep)
      .join("/"),
  );
}

/** One circle for each import that closes one. */
function circlesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): void => {
    const at = path.indexOf(node);
    if (at >= 0) circles.push(path.slice(at));
    if (at >= 0 || done.has(node)) return;
    path.push(node);
    for (const next of graph.get(node) ?? []) visit(next);
    path.pop();
    done.add(node);
  };
  for (const node of graph.keys()) visit(node);
  return circles;
}

/** The directory below src that a file lies in; the path itself outside src. */
function directoryOf(path: string): string {
  return /^src\/([^/]+)\//.exec(path)?.[1] ?? path;
}

function mayImport(from: string, target: string): boolean {
  const [room, other] = [directoryOf(from), directoryOf(target)];
  if (NEVER.some(([a, b]) => from.startsWith(a) && target.startsWith(b))) return false;
  return room === other || (ARROWS[room]?.includes(other) ?? false);
}
