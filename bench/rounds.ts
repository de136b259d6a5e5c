import { type Watched, watch } from "./process-usage.ts";
import { type Spread, spread } from "./statistics.ts";

/** Something whose throughput is measured. */
export interface Measurement {
  readonly name: string;
  /** The measurement of the same round that this one is divided by. */
  readonly baseline?: string;
  /** The least ratio to the baseline that is aimed for. */
  readonly target?: number;
  readonly processes: readonly Watched[];
  readonly run: (durationMs: number) => Promise<Moved>;
}

/** Bytes moved, counted once, and the time it took. */
export interface Moved {
  readonly bytes: number;
  readonly seconds: number;
}

/** A measurement over all rounds. */
export interface Throughput {
  readonly name: string;
  readonly mbPerSecond: Spread;
  /** Ratio of each round's figure to the baseline of the same round. */
  readonly ratio?: Spread;
  readonly baseline?: string;
  readonly target?: number;
  /** Median of what each role used: CPU seconds per 1e9 bytes, all processes of the role. */
  readonly cpuSecondsPerGb: Readonly<Record<string, number>>;
  /** CPU time of all roles for a byte, over that of the baseline. */
  readonly cpuRatio?: number;
  /** The largest peak of any process of the role. */
  readonly peakMb: Readonly<Record<string, number>>;
}

/** The roles' figures of one round. */
interface Round {
  readonly mbPerSecond: number;
  readonly roles: ReadonlyMap<string, { cpuSecondsPerGb: number; peakMb: number }>;
}

/**
 * Measures everything once a round, so that what is compared was measured within seconds of each
 * other: the machine's speed changes while others use it. A baseline is measured before and after
 * what is compared with it, and counts with the mean of both.
 */
export async function measureRounds(
  measurements: readonly Measurement[],
  options: { rounds: number; durationMs: number; warmUpMs: number; log: (line: string) => void },
): Promise<Throughput[]> {
  const rounds = new Map<string, Round[]>(measurements.map(({ name }) => [name, []]));
  for (let round = 1; round <= options.rounds; round++) {
    const once = async (measurement: Measurement): Promise<Round> => {
      // The broker still removes what the previous measurement has left.
      await measurement.run(options.warmUpMs);
      const found = await measureOnce(measurement, options.durationMs);
      options.log(`${measurement.name}: ${found.mbPerSecond.toFixed(0)} MB/s (${round})`);
      return found;
    };
    for (const measurement of measurements) {
      if (measurement.baseline !== undefined) continue;
      const before = await once(measurement);
      const compared = measurements.filter(({ baseline }) => baseline === measurement.name);
      for (const each of compared) rounds.get(each.name)?.push(await once(each));
      const after = compared.length === 0 ? before : await once(measurement);
      rounds.get(measurement.name)?.push(meanOf(before, after));
    }
  }
  return measurements.map((measurement) => summary(measurement, rounds));
}

async function measureOnce(measurement: Measurement, durationMs: number): Promise<Round> {
  const { result, usage } = await watch(measurement.processes, () => measurement.run(durationMs));
  const roles = new Map(
    [...usage].map(([role, { cpuSeconds, peakBytes }]) => [
      role,
      { cpuSecondsPerGb: cpuSeconds / (result.bytes / 1e9), peakMb: peakBytes / 1e6 },
    ]),
  );
  return { mbPerSecond: result.bytes / result.seconds / 1e6, roles };
}

function meanOf(before: Round, after: Round): Round {
  const mean = (a: number, b: number): number => (a + b) / 2;
  const roles = [...before.roles].map(([role, a]) => {
    const b = after.roles.get(role) ?? a;
    const cpuSecondsPerGb = mean(a.cpuSecondsPerGb, b.cpuSecondsPerGb);
    return [role, { cpuSecondsPerGb, peakMb: Math.max(a.peakMb, b.peakMb) }] as const;
  });
  return { mbPerSecond: mean(before.mbPerSecond, after.mbPerSecond), roles: new Map(roles) };
}

function summary(measurement: Measurement, all: ReadonlyMap<string, Round[]>): Throughput {
  const { name, baseline, target } = measurement;
  const rounds = all.get(name) ?? [];
  const figures = {
    name,
    mbPerSecond: spread(rounds.map((round) => round.mbPerSecond)),
    cpuSecondsPerGb: byRole(rounds, (values) => spread(values).median, "cpuSecondsPerGb"),
    peakMb: byRole(rounds, (values) => spread(values).max, "peakMb"),
  };
  if (baseline === undefined) return figures;
  const others = all.get(baseline) ?? [];
  const ratio = spread(
    rounds.map((round, i) => round.mbPerSecond / (others[i]?.mbPerSecond ?? Number.NaN)),
  );
  const cpuRatio = cpuOfAll(rounds) / cpuOfAll(others);
  return { ...figures, baseline, ratio, cpuRatio, ...(target !== undefined && { target }) };
}

function byRole(
  rounds: readonly Round[],
  one: (values: readonly number[]) => number,
  key: "cpuSecondsPerGb" | "peakMb",
): Record<string, number> {
  const roles = [...(rounds[0]?.roles.keys() ?? [])];
  const values = (role: string): number[] =>
    rounds.map((round) => round.roles.get(role)?.[key] ?? Number.NaN);
  return Object.fromEntries(roles.map((role) => [role, one(values(role))]));
}

/** Returns the CPU seconds per 1e9 bytes of all roles together; the median of the rounds. */
function cpuOfAll(rounds: readonly Round[]): number {
  const sums = rounds.map((round) =>
    [...round.roles.values()].reduce((sum, { cpuSecondsPerGb }) => sum + cpuSecondsPerGb, 0),
  );
  return spread(sums).median;
}
