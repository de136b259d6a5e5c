// Proves that the documents hold together: each link to a file or a heading leads there, each document can be
// reached from docs/README.md, and every document that a source names is there.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: ROOT,
  encoding: "utf8",
});
const files = tracked.split("\n").filter((path) => path !== "" && existsSync(join(ROOT, path)));
const documents = files.filter((path) => path.endsWith(".md"));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** Text without what a reader does not take for headings and links. */
function prose(document: string): string {
  return read(document).replaceAll(/^```.*?^```$/gms, "");
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchors(document: string): string[] {
  return [...prose(document).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

interface Link {
  readonly target: string;
  readonly path: string;
  readonly anchor: string;
}

function links(document: string): Link[] {
  return [...prose(document).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !target.includes(":"))
    .map((target) => {
      const [file = "", anchor = ""] = target.split("#");
      const path = file === "" ? document : normalize(join(dirname(document), file));
      return { target, path, anchor };
    });
}

test.each(documents)("the links of %s lead somewhere", (document) => {
  const broken = links(document).filter(
    ({ path, anchor }) =>
      !existsSync(join(ROOT, path)) || (anchor !== "" && !anchors(path).includes(anchor)),
  );
  expect(broken.map(({ target }) => target)).toEqual([]);
});

test("every document can be reached from docs/README.md", () => {
  const reached = new Set(["docs/README.md"]);
  for (const document of reached) {
    for (const { path } of links(document)) if (documents.includes(path)) reached.add(path);
  }
  const shelves = documents.filter((path) => path.startsWith("docs/"));
  expect(shelves.length).toBeGreaterThan(20);
  expect(shelves.filter((path) => !reached.has(path))).toEqual([]);
});

test("every document that a source names is there", () => {
  const named = files
    .filter((path) =>
      /(?:\.(?:ts|mjs|c|h|py|sh|conf|json|ya?ml|service|env)|Dockerfile)$/.test(path),
    )
    .flatMap((path) => read(path).match(/\bdocs\/[\w/.-]*\w\.md\b/g) ?? []);
  expect(named).toContain("docs/reference/errors.md");
  expect([...new Set(named)].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
