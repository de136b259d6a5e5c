import { Random } from "../../test/simulation/random.ts";
import { optionsOf } from "../command-line.ts";
import { describeMachine } from "../machine.ts";
import { checkRun, type Finding } from "./check.ts";
import { measureRun, type RunFigures } from "./figures.ts";
import { readStormOptions, type StormOptions } from "./options.ts";
import { reportRun } from "./report.ts";
import { runStorm } from "./run-storm.ts";
import { planStorm } from "./schedule.ts";
import { ENCODINGS, reportSlowLinks, runSlowLinks, type SlowLinkFigures } from "./slow-links.ts";

/** How much longer than its faults a run may take before it counts as hanging. */
const HANG_MS = 300_000;

async function main(): Promise<void> {
  const options = optionsOf(readStormOptions);
  if (options === undefined) return;
  const machine = describeMachine();
  const calm = await run("fault-free", {
    ...options,
    faultsAnHour: 0,
    hostKills: 0,
    brokerKills: 0,
  });
  const storm = await run("storm", options);
  const links = await runLinks();
  console.log(`${reportRun(machine, options, calm, storm)}\n\n${reportSlowLinks(links.figures)}`);
  process.exitCode = calm.isRight && storm.isRight && links.isRight ? 0 : 1;
}

/** Trains over slow links, with each encoding. */
async function runLinks(): Promise<{ figures: SlowLinkFigures[]; isRight: boolean }> {
  const figures: SlowLinkFigures[] = [];
  let isRight = true;
  for (const { encoding } of ENCODINGS) {
    console.error(`slow links: ${encoding}`);
    const found = await runSlowLinks(encoding, AbortSignal.timeout(HANG_MS));
    tell(found.findings);
    figures.push(...found.figures);
    isRight &&= found.findings.length === 0;
  }
  return { figures, isRight };
}

function tell(findings: readonly Finding[]): void {
  for (const { kind, text } of findings) console.error(`  ${kind}: ${text}`);
}

/** Makes one run, and tells what the checker found. */
async function run(
  name: string,
  options: StormOptions,
): Promise<{ figures: RunFigures; isRight: boolean }> {
  const { minutes, seed, learners, hosts, hostFlags, work } = options;
  const durationMs = minutes * 60_000;
  const size = { ...options, durationMs };
  const learnerFaults = Math.ceil((options.faultsAnHour * minutes) / 60);
  const faults = planStorm({ ...size, learnerFaults }, new Random(seed));
  console.error(`${name}: ${learners} learners for ${minutes} min, ${faults.length} faults`);
  const record = await runStorm({
    place: { learners, hosts, work, hostFlags, seed },
    ...{ durationMs, faults, log: (line: string) => console.error(`  ${line}`) },
    signal: AbortSignal.timeout(durationMs + HANG_MS),
  });
  const findings = checkRun(record.logs, record.facts);
  tell(findings);
  return { figures: measureRun(record), isRight: findings.length === 0 };
}

await main();
