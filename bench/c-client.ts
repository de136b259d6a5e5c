import type { AgentProcess } from "./agent-process.ts";
import { Bed } from "./bed.ts";
import { buildCPrograms, type CProgram, cProgramPath, missingForC } from "./c-programs.ts";
import { LineProcess } from "./line-process.ts";
import { type NamedModel, parameterBytes } from "./models.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import type { Trainer } from "./programs/trainer.ts";
import { type Measurement, type Moved, measureRounds, type Throughput } from "./rounds.ts";
import { WARM_UP_MODEL } from "./warm-up.ts";

/** The target share of the raw figure, of cnats, for a pull and an applied push. */
const RATIO = 0.85;

/** Bytes of the models that the C client is measured on. */
const MODEL_BYTES = 40e6;

const STREAM = "BENCH-C";
const JOB = "bench-c";

const OPERATIONS = { pull: "pull, 1 trainer", grad: "push sgd, 1 trainer" } as const;
/** Names of the measurements of steps: all gradients are pushed, and then all values pulled. */
const STEPS = { typescript: "steps in TypeScript", c: "steps" } as const;
const RAWS = { core: "raw core", journal: "raw JetStream" } as const;

/** Compares the C library with C programs that use the broker without it, on file journals. */
export async function benchC(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<Throughput[]> {
  const models = options.models
    .filter((model) => model.parameters * parameterBytes(model) === MODEL_BYTES)
    .filter((model) => wanted(model, options).length > 0 || wantsSteps(model, options));
  if (models.length === 0) return [];
  const missing = await missingForC();
  if (missing !== undefined) {
    options.log(`c: left out, because this machine lacks ${missing}`);
    return [];
  }
  await buildCPrograms();
  const bed = await Bed.open(options.profileDirectory);
  try {
    const host = await bed.startHost(JOB, "file");
    const raw = await CRaw.start(bed);
    const trainer = startProgram(bed, "trainer");
    await trainer.call("open", bed.broker.url, JOB, "trainer-1");
    // For the host, which is not a C program.
    await create(trainer, WARM_UP_MODEL);
    for (const operation of ["grad", "pull"]) {
      await trainer.numbers("run", operation, options.compileMs);
    }
    const typescript = await startTypeScript(bed);
    const throughput: Throughput[] = [];
    for (const model of models) {
      await create(trainer, model);
      const measurements = wanted(model, options).flatMap(([kind, operation]) => [
        raw.measurement(model, kind),
        trainerMeasurement(bed, host, trainer, model, kind, operation),
      ]);
      if (wantsSteps(model, options)) {
        measurements.push(...stepMeasurements(bed, host, trainer, typescript, model));
      }
      throughput.push(...(await measureRounds(measurements, options)));
    }
    return throughput;
  } finally {
    await bed.close();
  }
}

/** Creates the parameters of a model, which the trainer's runs then move. */
async function create(trainer: LineProcess, model: NamedModel): Promise<void> {
  const { prefix, parameters, shape } = model;
  await trainer.call("create", prefix, parameters, shape.join(","));
}

/**
 * Lists the measurements that are asked for of a model: raw ones, each with those that are compared
 * with it.
 */
function wanted(
  model: NamedModel,
  options: BenchOptions,
): [keyof typeof RAWS, keyof typeof OPERATIONS][] {
  const pairs: ReturnType<typeof wanted> = [
    ["core", "pull"],
    ["journal", "grad"],
  ];
  return pairs.filter(
    ([kind, operation]) =>
      isWanted(options, nameOf(model, RAWS[kind])) ||
      isWanted(options, nameOf(model, OPERATIONS[operation])),
  );
}

function nameOf(model: NamedModel, what: string): string {
  return `c, ${model.name}, ${what}`;
}

/** Whether steps are asked for: those of C, or those with which they are compared. */
function wantsSteps(model: NamedModel, options: BenchOptions): boolean {
  return Object.values(STEPS).some((step) => isWanted(options, nameOf(model, step)));
}

/** Starts a trainer of the same job in TypeScript. */
async function startTypeScript(bed: Bed): Promise<AgentProcess<Trainer>> {
  const trainer = bed.start<Trainer>("trainer");
  await trainer.call("open", { url: bed.broker.url, job: JOB, trainer: "trainer-2" });
  await trainer.call("run", { model: WARM_UP_MODEL, operation: "step", durationMs: 1 });
  return trainer;
}

/**
 * Makes the measurements of pushes of all gradients, each followed by a pull of all values, of one
 * trainer in each language.
 */
function stepMeasurements(
  bed: Bed,
  host: { readonly pid: number },
  c: LineProcess,
  typescript: AgentProcess<Trainer>,
  model: NamedModel,
): Measurement[] {
  const processes = (pid: number) => [
    { role: "broker", pid: bed.broker.pid },
    { role: "host", pid: host.pid },
    { role: "trainer", pid },
  ];
  const baseline = nameOf(model, STEPS.typescript);
  return [
    {
      name: baseline,
      processes: processes(typescript.pid),
      run: async (durationMs) => {
        const task = { model, operation: "step", durationMs } as const;
        const done = await typescript.call("run", task);
        return { bytes: done.bytes, seconds: (done.endMs - done.startMs) / 1e3 };
      },
    },
    {
      name: nameOf(model, STEPS.c),
      baseline,
      target: 1,
      processes: processes(c.pid),
      run: async (durationMs) => {
        const [bytes = 0, startMs = 0, endMs = 0] = await c.numbers("run", "step", durationMs);
        return { bytes, seconds: (endMs - startMs) / 1e3 };
      },
    },
  ];
}

/** Starts a program of `bench/c` that ends with the bed. */
function startProgram(bed: Bed, program: CProgram): LineProcess {
  const started = LineProcess.start(cProgramPath(program));
  bed.adopt(started);
  return started;
}

function trainerMeasurement(
  bed: Bed,
  host: { readonly pid: number },
  trainer: LineProcess,
  model: NamedModel,
  kind: keyof typeof RAWS,
  operation: keyof typeof OPERATIONS,
): Measurement {
  return {
    name: nameOf(model, OPERATIONS[operation]),
    baseline: nameOf(model, RAWS[kind]),
    target: RATIO,
    processes: [
      { role: "broker", pid: bed.broker.pid },
      { role: "host", pid: host.pid },
      { role: "trainer", pid: trainer.pid },
    ],
    run: async (durationMs) => {
      // Of the model that was created last.
      const [bytes = 0, startMs = 0, endMs = 0] = await trainer.numbers(
        "run",
        operation,
        durationMs,
      );
      return { bytes, seconds: (endMs - startMs) / 1e3 };
    },
  };
}

/** The C programs that send and receive without a parameter server. */
class CRaw {
  readonly #bed: Bed;
  readonly #senders: Record<keyof typeof RAWS, LineProcess>;
  readonly #receivers: Record<keyof typeof RAWS, LineProcess>;

  private constructor(bed: Bed) {
    this.#bed = bed;
    this.#senders = {
      core: startProgram(bed, "core-sender"),
      journal: startProgram(bed, "journal-sender"),
    };
    this.#receivers = {
      core: startProgram(bed, "core-receiver"),
      journal: startProgram(bed, "journal-receiver"),
    };
  }

  /** Starts and connects them. */
  static async start(bed: Bed): Promise<CRaw> {
    const raw = new CRaw(bed);
    const { url } = bed.broker;
    for (const { core, journal } of [raw.#senders, raw.#receivers]) {
      await core.call("open", url, "bench.core");
      await journal.call("open", url);
    }
    return raw;
  }

  measurement(model: NamedModel, kind: keyof typeof RAWS): Measurement {
    return {
      name: nameOf(model, RAWS[kind]),
      processes: [
        { role: "broker", pid: this.#bed.broker.pid },
        { role: "sender", pid: this.#senders[kind].pid },
        { role: "receiver", pid: this.#receivers[kind].pid },
      ],
      run: (durationMs) =>
        kind === "core" ? this.#core(model, durationMs) : this.#journal(model, durationMs),
    };
  }

  async #core(model: NamedModel, durationMs: number): Promise<Moved> {
    const bytes = model.blockBytes;
    const args = [bytes, model.parameters * parameterBytes(model), durationMs];
    const [messages = 0, startMs = 0] = await this.#senders.core.numbers("run", ...args);
    const [endMs = 0] = await this.#receivers.core.numbers("last", messages);
    return { bytes: messages * bytes, seconds: (endMs - startMs) / 1e3 };
  }

  async #journal(model: NamedModel, durationMs: number): Promise<Moved> {
    const subject = "bench.journal";
    const bytes = model.blockBytes;
    await this.#receivers.journal.call("read", STREAM, subject, bytes);
    const args = [subject, bytes, parameterBytes(model), durationMs];
    const [messages = 0, startMs = 0] = await this.#senders.journal.numbers("run", ...args);
    const [endMs = 0] = await this.#receivers.journal.numbers("last", messages);
    return { bytes: messages * bytes, seconds: (endMs - startMs) / 1e3 };
  }
}
