import { join } from "node:path";
import { findPython, TREE } from "../test/support/find-python.ts";
import { Bed } from "./bed.ts";
import { buildCPrograms, cLibraryPath, cProgramPath, missingForC } from "./c-programs.ts";
import { LineProcess } from "./line-process.ts";
import { MODELS, type NamedModel, parameterBytes } from "./models.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { type Measurement, measureRounds, type Throughput } from "./rounds.ts";
import { type Spread, spread } from "./statistics.ts";
import { WARM_UP_MODEL } from "./warm-up.ts";

/** The target share of the C library's throughput for the Python client. */
const RATIO = 0.9;

/** The trainer in Python; this file lies in build/programs/bench. */
const TRAINER = join(import.meta.dirname, "../../../bench/python/trainer.py");
const JOB = "bench-python";

const OPERATIONS = {
  pull: "pull",
  new: "pull, new arrays",
  mix: "push mix",
  grad: "push sgd",
} as const;
type Operation = keyof typeof OPERATIONS;

/** The model that is moved as a whole, and the one that single calls move. */
const MODEL = MODELS.find((model) => parameterBytes(model) === 40e6);
const SMALL: NamedModel = {
  name: "16 numbers",
  prefix: "small",
  parameters: 1,
  shape: [16],
  blockBytes: 64,
  perCall: 1,
  quick: true,
};
const CALLS = 1_000;

/** The callers of small calls. */
const CALLERS = ["libpserver", "main thread", "another thread"] as const;

/** How long one small call takes, one after the other. */
export interface SmallCalls {
  readonly name: string;
  readonly usEach: Spread;
  /** Ratio of each round's time to that of the C library in the same round. */
  readonly ratioToC?: Spread;
}

/** Results of the Python client. */
export interface PythonFindings {
  readonly throughput: readonly Throughput[];
  readonly calls: readonly SmallCalls[];
}

/** A trainer in each language, of the same job. */
interface Trainers {
  readonly bed: Bed;
  readonly host: { readonly pid: number };
  readonly c: LineProcess;
  readonly python: LineProcess;
}

/** Compares the Python client with the C library that it calls, on file journals. */
export async function benchPython(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<PythonFindings> {
  const moved = (Object.keys(OPERATIONS) as Operation[]).filter((operation) =>
    isWanted(options, nameOf(operation)),
  );
  const small = (["pull", "mix"] as const).filter((operation) =>
    isWanted(options, smallName(operation, CALLERS[1])),
  );
  const findings = { throughput: [] as Throughput[], calls: [] as SmallCalls[] };
  if (moved.length + small.length === 0 || MODEL === undefined) return findings;
  const python = await pythonToRun(options.log);
  if (python === undefined) return findings;
  await buildCPrograms();
  const bed = await Bed.open(options.profileDirectory);
  try {
    const trainers = await startTrainers(bed, python);
    await create(trainers, WARM_UP_MODEL);
    for (const operation of ["grad", "pull"]) {
      await trainers.c.numbers("run", operation, options.compileMs);
    }
    await create(trainers, MODEL);
    const measurements = moved.flatMap((operation) => pairOf(trainers, operation));
    findings.throughput.push(...(await measureRounds(measurements, options)));
    await create(trainers, SMALL);
    for (const operation of small) {
      findings.calls.push(...(await measureCalls(trainers, operation, options)));
    }
    return findings;
  } finally {
    await bed.close();
  }
}

/** Finds a Python with numpy; returns undefined, after a message, if something is missing. */
async function pythonToRun(log: (line: string) => void): Promise<string | undefined> {
  const missing = await missingForC();
  if (missing !== undefined) {
    log(`python: left out, because this machine lacks ${missing}`);
    return undefined;
  }
  try {
    return await findPython("numpy");
  } catch (error) {
    log(`left out: ${error instanceof Error ? error.message : error}`);
    return undefined;
  }
}

/** Starts both trainers on the same build of the C library. */
async function startTrainers(bed: Bed, python: string): Promise<Trainers> {
  const host = await bed.startHost(JOB, "file");
  const env = { PYTHONPATH: TREE, PSERVER_LIBRARY: cLibraryPath(), PYTHONDONTWRITEBYTECODE: "1" };
  const trainers = {
    c: LineProcess.start(cProgramPath("trainer")),
    python: LineProcess.start(python, [TRAINER], env),
  };
  for (const [name, trainer] of Object.entries(trainers)) {
    bed.adopt(trainer);
    await trainer.call("open", bed.broker.url, JOB, name);
  }
  return { bed, host, ...trainers };
}

async function create({ c, python }: Trainers, model: NamedModel): Promise<void> {
  const { prefix, parameters, shape } = model;
  for (const trainer of [c, python]) {
    await trainer.call("create", prefix, parameters, shape.join(","));
  }
}

/** Pairs an operation in C with the same in Python. */
function pairOf(trainers: Trainers, operation: Operation): Measurement[] {
  const { bed, host, c, python } = trainers;
  const measurement = (trainer: LineProcess, name: string): Measurement => ({
    name,
    processes: [
      { role: "broker", pid: bed.broker.pid },
      { role: "host", pid: host.pid },
      { role: "trainer", pid: trainer.pid },
    ],
    run: async (durationMs) => {
      const found = await trainer.numbers("run", operation, durationMs);
      const [bytes = 0, startMs = 0, endMs = 0] = found;
      return { bytes, seconds: (endMs - startMs) / 1e3 };
    },
  });
  const name = nameOf(operation);
  const baseline = `${name}, libpserver`;
  return [measurement(c, baseline), { ...measurement(python, name), baseline, target: RATIO }];
}

function nameOf(operation: Operation): string {
  return `python, 1 × 40 MB, ${OPERATIONS[operation]}`;
}

function smallName(operation: Operation, caller: string): string {
  return `python, ${SMALL.name}, ${OPERATIONS[operation]}, ${caller}`;
}

/**
 * Measures each caller in turn, the C library before and after them, with the mean of both as its
 * figure.
 */
async function measureCalls(
  { c, python }: Trainers,
  operation: Operation,
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<SmallCalls[]> {
  const us = async (trainer: LineProcess, ...thread: string[]): Promise<number> => {
    const [startMs = 0, endMs = 0] = await trainer.numbers("repeat", operation, CALLS, ...thread);
    return ((endMs - startMs) * 1e3) / CALLS;
  };
  const rounds: number[][] = [];
  for (let round = 0; round <= options.rounds; round++) {
    const before = await us(c);
    const ours = [await us(python, "main"), await us(python, "another")];
    const base = (before + (await us(c))) / 2;
    // The first one warms up.
    if (round > 0) rounds.push([base, ...ours]);
  }
  return CALLERS.map((caller, i) => {
    const times = rounds.map((round) => round[i] ?? Number.NaN);
    const ratioToC = spread(rounds.map((round) => (round[i] ?? 0) / (round[0] ?? 0)));
    const found = { name: smallName(operation, caller), usEach: spread(times) };
    options.log(`${found.name}: ${found.usEach.median.toFixed(0)} µs a call`);
    return i === 0 ? found : { ...found, ratioToC };
  });
}
