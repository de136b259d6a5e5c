/** Finds the examples in documents: the fenced blocks, and whether a document says why one is not run. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** A fenced block of a document. */
export interface Example {
  readonly document: string;
  /** Line of the document at which the block begins. */
  readonly line: number;
  /** What the fence names: `sh`, `ts`, …; empty if nothing. */
  readonly language: string;
  readonly text: string;
  /** Why no test runs it, from a comment `<!-- not run: … -->` just before the block. */
  readonly notRun: string | undefined;
}

/** The documents whose examples users copy. Decisions show what was considered, which need not run. */
const DOCUMENTS = execFileSync(
  "git",
  ["ls-files", "README.md", "CONTRIBUTING.md", "docs/**/*.md"],
  {
    cwd: ROOT,
    encoding: "utf8",
  },
)
  .split("\n")
  .filter((path) => path !== "" && !path.includes("/adr/"));

const FENCED = /(?:^<!-- not run: ([^>]+?) -->\n)?^```(\w*)\n(.*?)^```$/gms;

/** Lists all fenced blocks of the documents. */
export function readExamples(): Example[] {
  return DOCUMENTS.flatMap((document) => {
    const all = readFileSync(join(ROOT, document), "utf8");
    return [...all.matchAll(FENCED)].map(({ index, 1: notRun, 2: language = "", 3: text = "" }) => {
      const line = all.slice(0, index).split("\n").length;
      return { document, line, language, text, notRun };
    });
  });
}

/** Returns the command lines of an example: those after `$ `, or all of a block of shell. */
export function commandLines({ language, text }: Example): string[] {
  const joined = text.replaceAll(/\\\n\s*/g, " ").split("\n");
  const shown = joined.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  return language === "sh" ? joined : shown;
}
