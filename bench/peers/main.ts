import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startStepJob } from "../steps/our-steps.ts";
import { stepRows } from "../steps/step-table.ts";
import { measureSteps, type StepTime } from "../steps/step-times.ts";
import { TRAINING_STEPS, type TrainingStep } from "../steps/training-step.ts";
import { tableText } from "../table.ts";
import { peersPython, type RunningPeer, startPeer } from "./peer-process.ts";
import { OUR_PROMISES, PEERS } from "./peers.ts";

const HELP = `usage: make bench-peers PEERS='[--rounds N] [--json]'

Makes the same training steps on this parameter server, and on Redis, Ray, PyTorch RPC and TensorFlow where
they are installed, in turn, and prints how long a step takes on each.

  --rounds N  how often everything is measured (5)
  --json      results as one JSON object`;

const DURATION_MS = 1_500;
const WARM_UP_MS = 2_000;

/** The steps of the comparison: TensorFlow takes minutes for ten thousand variables, so none of tiny ones. */
const STEPS = TRAINING_STEPS.filter((step) => step.kind === "rows" || step.elements > 16);

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const rounds = Number(values.rounds);
  if (!Number.isSafeInteger(rounds) || rounds < 1) {
    throw new Error(`--rounds: expected a whole number of 1 or more; received ${values.rounds}`);
  }
  const [cpu] = cpus();
  const machine = `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpu?.model}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)} at the start`;
  const { peers, leftOut } = await startPeers();
  const times: StepTime[] = [];
  try {
    for (const step of STEPS) times.push(...(await compare(step, peers, rounds)));
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
  const systems = [
    ...Object.entries(OUR_PROMISES).map(([name, promises]) => ({ name, versions: "", promises })),
    ...peers.map(({ description: { name, promises }, versions }) => ({ name, versions, promises })),
  ];
  if (values.json) {
    console.log(JSON.stringify({ machine, times, systems, leftOut }, null, 2));
    return;
  }
  const rows = systems.map(({ name, versions, promises }) => [name, versions, promises]);
  console.log(`${machine}\n\n${tableText(stepRows(times))}\n`);
  console.log(tableText([["system", "versions", "what it promises"], ...rows]));
  for (const line of leftOut) console.log(`\n${line}`);
}

/** Starts all peers that this machine has, and says which it has not. */
async function startPeers(): Promise<{ peers: RunningPeer[]; leftOut: string[] }> {
  const python = await peersPython();
  const peers: RunningPeer[] = [];
  const leftOut: string[] = [];
  for (const description of PEERS) {
    try {
      peers.push(await startPeer(python, description));
    } catch (error) {
      leftOut.push(
        `${description.name}: left out: ${error instanceof Error ? error.message : error}`,
      );
      progress(leftOut.at(-1) ?? "");
    }
  }
  return { peers, leftOut };
}

/** Measures one step on ours, with both kinds of journals, and on every peer. */
async function compare(
  step: TrainingStep,
  peers: readonly RunningPeer[],
  rounds: number,
): Promise<StepTime[]> {
  const file = await startStepJob(step, "file");
  try {
    const memory = await startStepJob(step, "memory");
    try {
      const makers = [file.maker, memory.maker];
      for (const peer of peers) makers.push(await peer.maker(step));
      const options = { rounds, durationMs: DURATION_MS, warmUpMs: WARM_UP_MS, log: progress };
      return await measureSteps(step, makers, options);
    } finally {
      await memory[Symbol.asyncDispose]();
    }
  } finally {
    await file[Symbol.asyncDispose]();
  }
}

function progress(line: string): void {
  console.error(line);
}

// An orderly exit ends what was started and removes its files.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
await main();
