import type { AgentProcess } from "./agent-process.ts";
import { Bed } from "./bed.ts";
import { type NamedModel, ofBlocks } from "./models.ts";
import { type BenchOptions, isWanted } from "./options.ts";
import { cpuSeconds } from "./process-usage.ts";
import type { BenchHost } from "./programs/host.ts";
import type { Trainer } from "./programs/trainer.ts";
import { type Spread, spread } from "./statistics.ts";

/** Processor time of a host whose job has a tape, compared with one whose job has none. */
export interface TapeCost {
  readonly name: string;
  /** CPU seconds of the host for 1e9 bytes of gradients. */
  readonly withoutTape: Spread;
  readonly withTape: Spread;
  /** The time of all rounds with a tape over that without, less 1. */
  readonly cost: number;
  /** The highest cost that is aimed for. */
  readonly target: number;
}

const TARGET = 0.03;

/**
 * Minimum number of rounds, higher than that of other measurements, because the difference is
 * small.
 */
const ROUNDS_MIN = 6;

const KIB = 1024;
const MODELS: readonly NamedModel[] = [
  ofBlocks("64 KiB", 64 * KIB, 64, false),
  ofBlocks("1 MiB", KIB * KIB, 16, false),
];

interface Side {
  readonly host: AgentProcess<BenchHost>;
  readonly trainer: AgentProcess<Trainer>;
}

/**
 * Measures what the tape costs hosts while a trainer pushes gradients, in turns with a job without
 * a tape.
 */
export async function benchTapeCost(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<TapeCost[]> {
  const wanted = MODELS.filter((model) => isWanted(options, nameOf(model)));
  if (wanted.length === 0) return [];
  const bed = await Bed.open(options.profileDirectory);
  try {
    const without = await startSide(bed, "without", false);
    const withTape = await startSide(bed, "with", true);
    const costs: TapeCost[] = [];
    for (const model of wanted) {
      options.log(nameOf(model));
      costs.push(await measure(model, { without, withTape }, options));
    }
    return costs;
  } finally {
    await bed.close();
  }
}

function nameOf({ name }: NamedModel): string {
  return `tape, file, ${name}, push sgd`;
}

async function startSide(bed: Bed, job: string, tape: boolean): Promise<Side> {
  const host = await bed.startHost(job, "file", { tape });
  return { host, trainer: await bed.startTrainer(job, "trainer") };
}

async function measure(
  model: NamedModel,
  { without, withTape }: { readonly without: Side; readonly withTape: Side },
  options: BenchOptions,
): Promise<TapeCost> {
  for (const { trainer } of [without, withTape]) {
    await trainer.call("create", model);
    await trainer.call("run", { model, operation: "grad", durationMs: 2 * options.compileMs });
  }
  const found = { without: [] as HostTime[], withTape: [] as HostTime[] };
  for (let round = 0; round < Math.max(ROUNDS_MIN, options.rounds); round++) {
    // Which of the two comes first changes, because the machine's speed does, too.
    const order =
      round % 2 === 0 ? (["without", "withTape"] as const) : (["withTape", "without"] as const);
    for (const side of order) {
      const { host, trainer } = side === "without" ? without : withTape;
      const beforeSeconds = cpuSeconds(host.pid);
      const task = { model, operation: "grad", durationMs: options.durationMs } as const;
      const { bytes } = await trainer.call("run", task);
      found[side].push({ seconds: cpuSeconds(host.pid) - beforeSeconds, bytes });
    }
  }
  return {
    name: nameOf(model),
    withoutTape: spread(found.without.map(perGb)),
    withTape: spread(found.withTape.map(perGb)),
    cost: totalPerGb(found.withTape) / totalPerGb(found.without) - 1,
    target: TARGET,
  };
}

/** Processor time of a host for the gradients of one turn. */
interface HostTime {
  readonly seconds: number;
  readonly bytes: number;
}

function perGb({ seconds, bytes }: HostTime): number {
  return seconds / (bytes / 1e9);
}

function totalPerGb(turns: readonly HostTime[]): number {
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  return perGb({
    seconds: sum(turns.map((turn) => turn.seconds)),
    bytes: sum(turns.map((turn) => turn.bytes)),
  });
}
