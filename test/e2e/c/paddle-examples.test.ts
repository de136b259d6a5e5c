// Proves that the libraries are usable as they are built and as they are installed: the trainers of
// examples/c, found with pkg-config alone, learn, in C as four processes and in C++ as one, and
// TypeScript reads what they have learned; programs are found by CMake, shared and static; each
// library exports the published names only.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runWith } from "../../c/paddle/programs.ts";
import { BuiltLibrary } from "../../c/toolchain.ts";
import { TestJob } from "../../support/host.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const EXAMPLES = join(ROOT, "examples/c");
const DATA = join(EXAMPLES, "data/auto-mpg.csv");
const REVISIONS = [1, 2, 3];

/** So little that the broker has room for the journals of all jobs. */
const JOURNAL_BYTES = 8 * 1024 * 1024;

let directory: string;
let built: BuiltLibrary;
let shared: TestJob;
let jobs = 0;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-c-examples-"));
  built = await BuiltLibrary.asShipped();
  await makeExamples(directory, built.directory);
  shared = await TestJob.start({ journalBytesMax: JOURNAL_BYTES });
});

afterAll(async () => {
  await shared?.remove();
  await built?.remove();
  await rm(directory, { recursive: true, force: true });
});

/** Compiles all examples, or one, with the libraries below a prefix. */
async function makeExamples(out: string, prefix: string, example?: string): Promise<void> {
  const packages = `PKG_CONFIG_PATH=${join(prefix, "lib/pkgconfig")}`;
  const target = example === undefined ? "all" : join(out, example);
  await run("make", ["-s", "-j2", "-C", EXAMPLES, `OUT=${out}`, packages, target]);
}

/** A new job on the broker of all tests, with a host that ends with the test. */
async function startJob(): Promise<string> {
  const job = `examples-${++jobs}`;
  const host = await shared.host({ job });
  onTestFinished(() => host.kill());
  return job;
}

/** Where a trainer finds its job. */
function variablesOf(job: string): Record<string, string> {
  return { PSERVER_URL: shared.broker.url, PSERVER_JOB: job };
}

test("the minimal trainer of the core library learns its line", async () => {
  const job = await startJob();
  const variables = { PSERVER_URL: shared.broker.url };
  for (let times = 0; times < 2; times++) {
    await runWith(join(directory, "minimal"), [job], variables);
  }
  const client = await shared.trainer("reader", { job });
  const { data } = await client.pullFull("line");
  expect(data[0]).toBeCloseTo(2, 1);
  expect(data[1]).toBeCloseTo(1, 1);
});

describe.each(["revision-1", "revision-2", "revision-3"])("%s", (revision) => {
  test.each([
    [revision, 4],
    [`${revision}-cc`, 1],
  ])("%s learns as %i processes", async (program, trainers) => {
    const job = await startJob();
    const runs = Array.from({ length: trainers }, (_, rank) =>
      runWith(join(directory, program), [DATA, `${rank}`, `${trainers}`], variablesOf(job)),
    );
    for (const { output } of await Promise.all(runs)) {
      expect(output).toMatch(/^mean squared error: 5\.\d{3}\n$/);
    }
    const client = await shared.trainer("reader", { job });
    const [weights, bias] = await client.getParams(["weights", "bias"]);
    expect(weights?.data).toHaveLength(5);
    // The mean consumption of these cars; trainers that work at once stay a little beside it.
    expect(bias?.data[0]).toBeCloseTo(18.4758, 0);
  });
});

test("export the published names only", async () => {
  const lib = join(built.directory, "lib");
  for (const revision of REVISIONS) {
    for (const args of [
      ["-D", "--defined-only", join(lib, `libpaddle_pserver_client.so.${revision}`)],
      [
        "-g",
        "--defined-only",
        join(lib, `paddle-pserver-client-${revision}/libpaddle_pserver_client.a`),
      ],
    ]) {
      const { stdout } = await run("nm", args);
      const names = [...stdout.matchAll(/^[0-9a-f]+ \w (\S+)$/gm)].map((match) => match[1] ?? "");
      expect(names).toContain("paddle_save_model");
      expect(names.filter((name) => !name.startsWith("paddle_"))).toEqual([]);
    }
  }
});

describe("installed", () => {
  const stage = (): string => join(directory, "stage");

  beforeAll(async () => {
    const settings = [`BUILD=${built.directory}`, `PREFIX=${stage()}`];
    await run("make", ["-s", "-C", join(ROOT, "src/client/c"), "install", ...settings]);
  });

  test("headers, libraries and packages are complete", async () => {
    const lib = await readdir(join(stage(), "lib"));
    for (const revision of REVISIONS) {
      const headers = await readdir(join(stage(), `include/paddle/v${revision}`));
      expect(headers).toContain("paddle_pserver_client.h");
      expect(lib).toContain(`libpaddle_pserver_client.so.${revision}`);
      const name = `paddle-pserver-client-${revision}`;
      const pc = await readFile(join(stage(), `lib/pkgconfig/${name}.pc`), "utf8");
      expect(pc).not.toContain(built.directory);
      expect(pc).not.toContain("-rpath,");
    }
  });

  test("a trainer is built with pkg-config", async () => {
    const out = join(directory, "with-pkg-config");
    await mkdir(out);
    await makeExamples(out, stage(), "revision-3");
    const { output } = await runWith(join(out, "revision-3"), [DATA], {
      ...variablesOf(await startJob()),
      LD_LIBRARY_PATH: join(stage(), "lib"),
    });
    expect(output).toContain("mean squared error: 5.");
  });

  test("trainers are built with CMake, shared and static", async () => {
    const source = join(directory, "with-cmake");
    await mkdir(source);
    const targets = REVISIONS.flatMap((revision) => {
      const name = `paddle-pserver-client-${revision}`;
      const files = `${EXAMPLES}/revision-${revision}.c ${EXAMPLES}/cars.c`;
      return [
        `find_package(${name} 0.1 CONFIG REQUIRED)`,
        ...["", "-static"].flatMap((kind) => [
          `add_executable(revision-${revision}${kind} ${files})`,
          `target_link_libraries(revision-${revision}${kind} ${name}::${name}${kind} m)`,
        ]),
      ];
    });
    const text = ["cmake_minimum_required(VERSION 3.16)", "project(trainers C)", ...targets, ""];
    await writeFile(join(source, "CMakeLists.txt"), text.join("\n"));
    const build = join(source, "build");
    await run("cmake", ["-S", source, "-B", build, `-DCMAKE_PREFIX_PATH=${stage()}`]);
    await run("cmake", ["--build", build, "--parallel", "2"]);
    for (const revision of REVISIONS) {
      const variables = variablesOf(await startJob());
      for (const kind of ["", "-static"]) {
        const program = join(build, `revision-${revision}${kind}`);
        const { stdout } = await run("readelf", ["-d", program]);
        expect(stdout.includes("libpaddle_pserver_client")).toBe(kind === "");
        const { output } = await runWith(program, [DATA], variables);
        expect(output).toContain("mean squared error: 5.");
      }
    }
  });
});
