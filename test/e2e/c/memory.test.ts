// Proves, by valgrind, that the C library reads nothing that was never written, in its own parts and in
// every call against a real broker and host, and that it loses no memory. The other sanitizers do not
// find the former; here nothing is compiled in a special way, cnats and msgpack-c included.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, test } from "vitest";
import { renderVectors } from "../../../scripts/write-c-vectors.mjs";
import { runProgram } from "../../c/running-program.ts";
import { startJob, startProgram, startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary } from "../../c/toolchain.ts";
import { expectRounds } from "../../c/trained-rounds.ts";

const VECTORS = join(import.meta.dirname, "../../vectors");

/** What is possibly lost is the stacks of threads that a child after a fork has not got. */
const VALGRIND = [
  "--quiet",
  "--error-exitcode=99",
  "--leak-check=full",
  "--show-leak-kinds=definite,indirect",
  "--errors-for-leak-kinds=definite,indirect",
  `--suppressions=${join(import.meta.dirname, "../../c/valgrind.supp")}`,
];

let directory: string;
let library: BuiltLibrary;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-memory-"));
  library = await BuiltLibrary.asShipped();
});

afterAll(async () => {
  await library?.remove();
  await rm(directory, { recursive: true, force: true });
});

test("the parts that need no broker", async () => {
  await writeFile(join(directory, "vectors.h"), renderVectors(VECTORS));
  const program = await library.innerProgram("vectors", directory);
  await runProgram("valgrind", [...VALGRIND, program]);
});

test.each(["calls", "details"])("every call of %s", async (name) => {
  const job = await startServedJob({ modelDirectory: directory });
  const program = await library.program(name);
  await runProgram("valgrind", [...VALGRIND, program, job.broker.url, job.job]);
});

test("many parameters at once", async () => {
  const job = await startServedJob();
  const args = [await library.program("many"), job.broker.url, job.job, "c", "100", "1024", "3"];
  await runProgram("valgrind", [...VALGRIND, ...args]);
});

test("a host that is replaced", async () => {
  const job = await startJob();
  const host = await job.host();
  const program = await library.program("train");
  const args = [program, job.broker.url, job.job, "c", "4", "2"];
  const running = startProgram("valgrind", [...VALGRIND, ...args]);
  await running.lines("round", 2);
  await job.crash(host);
  await job.host();
  await running.end();
  await expectRounds(await job.trainer("reader"), 8);
});
