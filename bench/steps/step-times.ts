import { type Watched, watch } from "../process-usage.ts";
import type { StepsDone } from "../programs/step-trainer.ts";
import { type Spread, spread } from "../statistics.ts";
import { stepBytes, type TrainingStep } from "./training-step.ts";

/** A process, or several, that can make training steps. */
export interface StepMaker {
  readonly name: string;
  /** Name of the maker, measured before, by whose time in the same round this one's is divided. */
  readonly baseline?: string | undefined;
  /** Returns the processes whose CPU time counts: servers, broker and trainer. */
  readonly processes: () => readonly Watched[];
  /** Makes one step after the other for so long. */
  readonly run: (durationMs: number) => Promise<StepsDone>;
}

/** How long one kind of step takes, and what it costs. */
export interface StepTime {
  /** Name of the step, and of who made it. */
  readonly step: string;
  readonly maker: string;
  readonly ms: Spread;
  /** Ratio of the time of each round to that of the baseline in the same round. */
  readonly toRaw?: Spread;
  /** CPU time of a step in each role, in ms; medians of the rounds. */
  readonly cpuMs: Readonly<Record<string, number>>;
  /** CPU time of a step in all roles together, in ms; the median of the rounds. */
  readonly cpuMsOfAll: number;
  /** The most memory that the largest process of each role had resident, in MB of 1e6 bytes, in any round. */
  readonly peakMb: Readonly<Record<string, number>>;
  /** CPU seconds of all roles for 1e9 bytes of elements, both ways counted. */
  readonly cpuSecondsPerGb: number;
}

interface Round {
  readonly ms: number;
  readonly cpuMs: ReadonlyMap<string, number>;
  readonly peakMb: ReadonlyMap<string, number>;
}

/**
 * Number of times that the usual warm-up runs before the first step that counts. What V8 has not
 * compiled yet takes three times as long: a trainer or host in TypeScript needs some hundred steps,
 * of the thousands that a training makes.
 */
const WARM_UPS = 5;

/**
 * Lets all makers take turns, for some rounds, so that those that are compared were measured within
 * seconds of each other.
 */
export async function measureSteps(
  step: TrainingStep,
  makers: readonly StepMaker[],
  options: { rounds: number; durationMs: number; warmUpMs: number; log: (line: string) => void },
): Promise<StepTime[]> {
  const rounds = new Map<StepMaker, Round[]>(makers.map((maker) => [maker, []]));
  for (const maker of makers) await maker.run(WARM_UPS * options.warmUpMs);
  for (let round = 1; round <= options.rounds; round++) {
    for (const maker of makers) {
      const found = await measureOnce(maker, options.durationMs);
      options.log(`${step.name}, ${maker.name}: ${found.ms.toFixed(2)} ms a step (${round})`);
      rounds.get(maker)?.push(found);
    }
  }
  return makers.map((maker) => {
    const own = rounds.get(maker) ?? [];
    const raw = makers.find(({ name }) => name === maker.baseline);
    const times = summary(step, maker.name, own);
    return raw === undefined ? times : { ...times, toRaw: ratios(own, rounds.get(raw) ?? []) };
  });
}

async function measureOnce(maker: StepMaker, durationMs: number): Promise<Round> {
  const { result, usage } = await watch(maker.processes(), () => maker.run(durationMs));
  const { steps, startMs, endMs } = result;
  const cpuMs = new Map([...usage].map(([role, used]) => [role, (used.cpuSeconds * 1e3) / steps]));
  const peakMb = new Map([...usage].map(([role, used]) => [role, used.peakBytes / 1e6]));
  return { ms: (endMs - startMs) / steps, cpuMs, peakMb };
}

function ratios(own: readonly Round[], raw: readonly Round[]): Spread {
  return spread(own.map(({ ms }, i) => ms / (raw[i]?.ms ?? Number.NaN)));
}

function summary(step: TrainingStep, maker: string, rounds: readonly Round[]): StepTime {
  const roles = [...(rounds[0]?.cpuMs.keys() ?? [])];
  const median = (values: readonly number[]): number => spread(values).median;
  const sums = rounds.map(({ cpuMs }) => [...cpuMs.values()].reduce((sum, ms) => sum + ms, 0));
  const cpuMsOfAll = median(sums);
  return {
    step: step.name,
    maker,
    ms: spread(rounds.map(({ ms }) => ms)),
    cpuMs: Object.fromEntries(
      roles.map((role) => [role, median(rounds.map(({ cpuMs }) => cpuMs.get(role) ?? Number.NaN))]),
    ),
    peakMb: Object.fromEntries(
      roles.map((role) => [role, Math.max(...rounds.map(({ peakMb }) => peakMb.get(role) ?? 0))]),
    ),
    cpuMsOfAll,
    cpuSecondsPerGb: cpuMsOfAll / 1e3 / (stepBytes(step) / 1e9),
  };
}
