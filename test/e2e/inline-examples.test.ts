// Proves that the examples in the documents run as they are shown: each block of TypeScript and of C is compiled
// with what the text around it takes for granted, and runs against a job; each block of commands runs in order,
// except those that the document marks. A block of a new document fails here until it runs or is marked.
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { HostOptions } from "../../src/actors/host/host.ts";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { BuiltLibrary } from "../c/toolchain.ts";
import { MAIN } from "../cli/spawn-command.ts";
import { type Example, readExamples } from "../docs/fenced-examples.ts";
import { optimizerBytes, parameterBytes } from "../protocol/config/paddle-bytes.ts";
import { TestJob } from "../support/host.ts";

const run = promisify(execFile);
const ROOT = packageRoot();
const examples = readExamples();

/** What surrounds a block: the program that its document describes. */
interface Surroundings {
  readonly before: string;
  readonly after: string;
}

const bytesOf = (bytes: Uint8Array) => `Uint8Array.from([${[...bytes].join(", ")}])`;

const CLIENT = `import { connect } from "nats-pserver";
const ps = await connect({ job: "default" });
`;
const SELECTED = `${CLIENT}if (!(await ps.beginInit())) throw new Error("not selected");
`;
const DENSE = `const tensor = (rows: number) =>
  ({ dtype: "float32", shape: [rows, 4], data: new Float32Array(rows * 4) }) as const;
const [weights, table, gradients, gradient] = [tensor(3), tensor(100), tensor(3), tensor(3)];
const [columns, names] = [[0, 1], ["dense", "words"]];
`;
const CLOSE = "\nawait ps.close();\n";

/** By document, for each of its blocks in turn. */
const TYPESCRIPT: Readonly<Record<string, readonly Surroundings[]>> = {
  "README.md": [{ before: "", after: "" }],
  "docs/start/first-job.md": [
    { before: SELECTED + DENSE, after: `await ps.finishInit();${CLOSE}` },
    {
      before: `${SELECTED}${DENSE}await ps.initParam("dense", weights, { learningRate: 0.1 });
await ps.initParam("words", table, { learningRate: 0.1, sparse: true });
await ps.finishInit();
`,
      after: `if (used === undefined) throw new Error("nothing was pulled");${CLOSE}`,
    },
  ],
  "docs/guides/diloco.md": [
    {
      before: `${SELECTED}await ps.initParam("w", Float32Array.of(1, 2), { fragment: "f0", learningRate: 0.7 });
await ps.finishInit();
const train = async (tensors: readonly unknown[]) =>
  ({ w: new Float32Array(2 * tensors.length).fill(1) });
`,
      after: `if (next.version !== 1) throw new Error("expected a closed round");${CLOSE}`,
    },
  ],
  "docs/guides/history.md": [
    {
      before: `import { connect } from "nats-pserver";
{
  const ps = await connect({ job: "mnist" });
  await ps.createIfNotAlreadyCreated("w", Float32Array.of(1, 2));
  await ps.close();
}
`,
      after: `if (data.length !== 2 || shape.length !== 1) throw new Error("not what was created");\n`,
    },
  ],
  "docs/reference/compatibility.md": [
    {
      before: `${SELECTED}const data = Float32Array.of(1, 2);
const bytes = ${bytesOf(optimizerBytes({ optimizer: 1 }))};
const optimizerConfig = bytes;
const parameterConfig = ${bytesOf(parameterBytes())};
`,
      after: `await ps.finishInit();${CLOSE}`,
    },
  ],
};

const C: Surroundings = {
  before: `#include <pserver.h>
#include <stdio.h>
#include <stdlib.h>
static void check(pserver_status status) {
  const char *message;
  if (status == PSERVER_OK) return;
  pserver_last_error(&message);
  fprintf(stderr, "%s\\n", message);
  exit(1);
}
int main(void) {
  float line[2] = {0, 0}, steps[2] = {1, 1};
  pserver_tensor value = {PSERVER_FLOAT32, 1, {2}, line, sizeof line};
  pserver_gradient gradient = {.name = "line", .values = value};
  gradient.values.data = steps;
  const char *names[] = {"line"};
`,
  after: "  return 0;\n}\n",
};

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-inline-"));
  await mkdir(join(directory, "node_modules"));
  await symlink(ROOT, join(directory, "node_modules/nats-pserver"));
  await symlink(join(ROOT, "node_modules/@types"), join(directory, "node_modules/@types"));
  return () => rm(directory, { recursive: true, force: true });
});

/** The jobs that documents name. */
const JOB = "mnist";
const NEXT = "next";

/** How hosts of a job with rounds are started. */
const ROUNDS: Partial<HostOptions> = { synchronization: { mode: "diloco" } };

/** Serves jobs; returns how a user's programs and commands find the first one, and where its hosts save. */
async function serve(
  jobs: readonly string[],
  options: Partial<HostOptions> = {},
): Promise<[TestJob, NodeJS.ProcessEnv, string]> {
  const modelDirectory = await mkdtemp(join(directory, "models-"));
  const served = await TestJob.start({ ...options, modelDirectory });
  onTestFinished(() => served.remove());
  for (const job of jobs) await served.host({ job });
  return [
    served,
    { ...process.env, PSERVER_URL: served.broker.url, PSERVER_JOB: jobs[0] },
    modelDirectory,
  ];
}

function blocks(language: string): Example[] {
  return examples.filter((each) => each.language === language && each.notRun === undefined);
}

const typescript = blocks("ts").map((example, i, all) => {
  const first = all.findIndex(({ document }) => document === example.document);
  return { ...example, surroundings: TYPESCRIPT[example.document]?.[i - first] };
});

test.each(typescript)("TypeScript of $document, line $line", async (example) => {
  const { document, line, text, surroundings } = example;
  expect(surroundings, "a block without a program around it").toBeDefined();
  const options = document.includes("diloco") ? ROUNDS : {};
  const [, environment] = await serve([document.includes("history") ? JOB : "default"], options);
  const name = `${document.replaceAll(/\W/g, "-")}-${line}.mts`;
  // Ten minutes ago there was no such job.
  const shown = text.replaceAll('"10m ago"', '"now"');
  const file = join(directory, name);
  await writeFile(file, `${surroundings?.before}${shown}${surroundings?.after}`);
  const flags = ["--module", "nodenext", "--target", "esnext", "--types", "node", "--strict"];
  const compiled = run(join(ROOT, "node_modules/.bin/tsc"), [...flags, file], { cwd: directory });
  // The compiler tells what is wrong on its standard output.
  expect(await compiled.catch(({ stdout }) => stdout)).toMatchObject({ stdout: "" });
  await run(process.execPath, [file.replace(/mts$/, "mjs")], { env: environment });
});

test.each(blocks("c"))("C of $document, line $line", async ({ text }) => {
  const [, environment] = await serve(["default"]);
  const library = await BuiltLibrary.asShipped();
  onTestFinished(() => library.remove());
  const [source, program] = [join(directory, "inline.c"), join(directory, "inline")];
  await writeFile(source, C.before + text + C.after);
  const lib = join(library.directory, "lib");
  const linked = ["-L", lib, "-lpserver", `-Wl,-rpath,${lib}`];
  const flags = ["-Wall", "-Wextra", "-Werror", "-I", join(ROOT, "include")];
  await run("gcc", [...flags, source, ...linked, "-o", program]);
  await run(program, [], { env: environment });
});

describe("commands", () => {
  test.each(blocks("sh"))("$document, line $line", async ({ text }) => {
    const [served, environment, bin] = await serve([JOB, NEXT, "default"]);
    const command = join(bin, "pserver");
    await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
    await chmod(command, 0o755);
    const client = await served.trainer("trainer", { job: JOB });
    for (const name of ["line", "w"]) {
      await client.createIfNotAlreadyCreated(name, Float32Array.of(1, 2));
    }
    await symlink(join(ROOT, "examples"), join(bin, "examples"));
    await symlink(join(ROOT, "build"), join(bin, "build"));
    // In the directory of the saved models, which commands on the same machine read.
    await run("bash", ["-euo", "pipefail", "-c", text], {
      cwd: bin,
      env: { ...environment, PATH: `${bin}:${process.env["PATH"]}` },
    });
  });
});

test("every block is run here or marked, and Python's are run by the tests of the package", () => {
  const languages = new Set(examples.map(({ language }) => language));
  expect([...languages].sort()).toEqual(["", "c", "python", "sh", "ts"]);
});
