import { type BenchOptions, isWanted } from "../options.ts";
import { type StepTeam, startStepJob } from "./our-steps.ts";
import { measureSteps, type StepTime } from "./step-times.ts";
import type { TrainingStep } from "./training-step.ts";

/** A step of some size, made by a team. */
interface ScaleCase {
  readonly name: string;
  readonly step: TrainingStep;
  readonly team: StepTeam;
}

/** How a step grows with parameters, with rows, with the table, with trainers, and with hosts and workers. */
const SCALE_CASES: readonly ScaleCase[] = [
  ...[100, 1_000, 10_000, 50_000].map((parameters) => dense(parameters, 16)),
  ...[64, 512, 4_096, 32_768, 65_536].map((rows) => ofRows(1_000_000, 64, rows)),
  ...[100_000, 1_000_000, 10_000_000].map((tableRows) => ofRows(tableRows, 16, 4_096)),
  ...[1, 4, 16, 32].map((trainers) => byTeam({ trainers })),
  ...[2, 4].map((workers) => byTeam({ trainers: 4, workers })),
  ...[2, 4].map((hosts) => byTeam({ trainers: 4, hosts })),
];

/**
 * Measures steps of growing size, with journals on file: only if `--only scale` asks for it,
 * because it takes long.
 */
export async function benchScale(
  options: BenchOptions & { readonly log: (line: string) => void },
): Promise<StepTime[]> {
  const { profileDirectory } = options;
  const times: StepTime[] = [];
  if (options.only.length === 0) return times;
  for (const { name, step, team } of SCALE_CASES) {
    if (!isWanted(options, name)) continue;
    const job = await startStepJob(step, "file", { ...team, profileDirectory });
    try {
      times.push(...(await measureSteps({ ...step, name }, [job.maker], options)));
    } finally {
      await job[Symbol.asyncDispose]();
    }
  }
  return times;
}

function dense(parameters: number, elements: number): ScaleCase {
  const name = `scale, ${parameters.toLocaleString("en")} parameters of ${4 * elements} bytes`;
  return { name, step: { kind: "dense", name, parameters, elements }, team: {} };
}

function ofRows(tableRows: number, rowElements: number, rows: number): ScaleCase {
  const table = `${tableRows.toLocaleString("en")} × ${rowElements}`;
  const name = `scale, ${rows.toLocaleString("en")} rows of ${table}`;
  return { name, step: { kind: "rows", name, tableRows, rowElements, rows }, team: {} };
}

function byTeam(team: StepTeam): ScaleCase {
  const { trainers = 1, hosts = 1, workers = 1 } = team;
  const name = `scale, 16 × 64 KiB, trainers ${trainers}, hosts ${hosts}, workers of each ${workers}`;
  return { name, step: { kind: "dense", name, parameters: 16, elements: 16 * 1_024 }, team };
}
