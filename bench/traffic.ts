import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Bed } from "./bed.ts";
import { MODELS, type NamedModel } from "./models.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { startJob, stepMeasurement, stepName } from "./ours.ts";
import { measureRounds, type Throughput } from "./rounds.ts";
import { warmUpJob } from "./warm-up.ts";

/** Bytes that a push takes in the journals, compared with those of a whole gradient. */
export interface SparseTraffic {
  readonly name: string;
  readonly fullBytes: number;
  readonly sparseBytes: number;
}

/** A step with shorter elements both ways is to take at most this share of the time. */
const STEP_TIME_SHARES = { bfloat16: 0.65, int8: 0.45, e3m0: 0.35 } as const;
const ENCODINGS = Object.keys(STEP_TIME_SHARES) as (keyof typeof STEP_TIME_SHARES)[];

const WARM_UP_TASKS = [undefined, ...ENCODINGS].map((encoding) => ({
  operation: "step" as const,
  ...(encoding && { encoding }),
}));

const SPARSE_NAME = "sparse push, 1 % of 100,000 rows";
const SPARSE_SHAPE = [100_000, 64] as const;
const SPARSE_ROWS = 1_000;

/** Measures what shorter elements and fewer rows save. */
export async function benchTraffic(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<{ throughput: Throughput[]; sparse: SparseTraffic[] }> {
  const throughput: Throughput[] = [];
  for (const storage of ["file", "memory"] as const) {
    const models = MODELS.filter(
      (model) =>
        model.blockBytes >= 1024 ** 2 &&
        ENCODINGS.some((encoding) => isWanted(options, stepName(storage, model, encoding))),
    ).slice(0, options.quick ? 1 : 2);
    if (models.length === 0) continue;
    await inNewBed(options, async (bed) => {
      const job = await startJob(bed, storage, 1);
      await warmUpJob(job, WARM_UP_TASKS, options.compileMs);
      for (const model of models) {
        await job.trainers[0]?.call("create", model);
        throughput.push(...(await measureRounds(stepsOf(job, model), options)));
      }
    });
  }
  const sparse: SparseTraffic[] = [];
  if (isWanted(options, SPARSE_NAME)) {
    await inNewBed(options, async (bed) => {
      sparse.push(await measureSparse(bed));
    });
  }
  return { throughput, sparse };
}

function stepsOf(job: Parameters<typeof stepMeasurement>[0], model: NamedModel) {
  const plain = stepMeasurement(job, model, undefined, undefined);
  const encoded = ENCODINGS.map((encoding) => {
    const comparison = { baseline: plain.name, target: 1 / STEP_TIME_SHARES[encoding] };
    return stepMeasurement(job, model, encoding, comparison);
  });
  return [plain, ...encoded];
}

/** Pushes all rows of a parameter, then a hundredth of them, spread evenly. */
async function measureSparse(bed: Bed): Promise<SparseTraffic> {
  const { trainers } = await startJob(bed, "file", 1);
  const task = { name: "rows", shape: SPARSE_SHAPE };
  const distance = SPARSE_SHAPE[0] / SPARSE_ROWS;
  const rows = Array.from({ length: SPARSE_ROWS }, (_, i) => i * distance);
  const taken = async (send: object): Promise<number> => {
    const before = await journalBytes(bed);
    await trainers[0]?.call("sendRows", { ...task, ...send });
    return (await journalBytes(bed)) - before;
  };
  // The first one creates the parameter, which is not to be counted.
  await taken({ rows: [0] });
  return {
    name: SPARSE_NAME,
    fullBytes: await taken({}),
    sparseBytes: await taken({ rows }),
  };
}

/** Returns the bytes in all journals of the broker. */
async function journalBytes(bed: Bed): Promise<number> {
  const connection = await connect({ servers: [bed.broker.url], timeout: 10_000 });
  try {
    const manager = await jetstreamManager(connection);
    let bytes = 0;
    for await (const { config, state } of manager.streams.list()) {
      if (/^PS_bench-file_[0-9]+$/.test(config.name)) bytes += state.bytes;
    }
    return bytes;
  } finally {
    await connection.close();
  }
}

async function inNewBed(options: BenchOptions, run: (bed: Bed) => Promise<void>): Promise<void> {
  const bed = await Bed.open(options.profileDirectory);
  try {
    await run(bed);
  } finally {
    await bed.close();
  }
}
