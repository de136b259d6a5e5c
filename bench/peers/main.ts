import { buildCPrograms, missingForC } from "../c-programs.ts";
import { optionsOf } from "../command-line.ts";
import { describeMachine } from "../machine.ts";
import { type StepJob, startStepJob } from "../steps/our-steps.ts";
import { comparisonTables } from "../steps/step-table.ts";
import { measureSteps, type StepMaker, type StepTime } from "../steps/step-times.ts";
import type { TrainingStep } from "../steps/training-step.ts";
import { tableText } from "../table.ts";
import { type PeersOptions, readPeersOptions } from "./options.ts";
import { type PeerProgram, pythonPeer, type RunningPeer, startPeer } from "./peer-process.ts";
import {
  COMPARED_STEPS,
  canMake,
  OUR_PROMISES,
  type PeerDescription,
  PS_LITE,
  PYTHON_PEERS,
} from "./peers.ts";
import { buildPsLitePeer } from "./ps-lite.ts";

const DURATION_MS = 1_500;
const WARM_UP_MS = 2_000;

const NOTE = `ms: median (min–max) of the rounds. To raw: the time of a step over that of as many bytes through the broker
alone, in the same round: with a journal on file or in memory, as ours has; for the others, in memory. CPU ms: of all
processes together.`;

async function main(): Promise<void> {
  const options = optionsOf(readPeersOptions);
  if (options === undefined) return;
  const machine = describeMachine();
  const leftOut: string[] = [];
  const leave = (what: string, why: string): void => {
    leftOut.push(`${what}: left out: ${why}`);
    progress(leftOut.at(-1) ?? "");
  };
  const missing = await missingForC();
  if (missing === undefined) await buildCPrograms();
  else leave("raw steps, and steps in C", `this machine lacks ${missing}`);
  const peers = await startPeers(options, leave);
  const times: StepTime[] = [];
  try {
    for (const step of COMPARED_STEPS) {
      const able = peers.filter(({ description }) => canMake(description, step));
      for (const { description } of peers.filter((peer) => !able.includes(peer))) {
        leave(
          `${description.name}, ${step.name}`,
          `it takes minutes to prepare a step of more than ${description.parametersMax} parameters`,
        );
      }
      times.push(...(await compare(step, able, missing === undefined, options.rounds)));
    }
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
  const systems = [
    ...Object.entries(OUR_PROMISES).map(([storage, promises]) => ({
      name: `pserver, ${storage}`,
      versions: "",
      promises,
    })),
    ...peers.map(({ description: { name, promises }, versions }) => ({ name, versions, promises })),
  ];
  if (options.json) {
    console.log(JSON.stringify({ machine, times, systems, leftOut }, null, 2));
    return;
  }
  const rows = systems.map(({ name, versions, promises }) => [name, versions, promises]);
  const tables = [
    ...comparisonTables(times),
    [["system", "versions", "what it promises"], ...rows],
  ].map((table) => tableText(table));
  console.log([machine, NOTE, ...tables, ...leftOut].join("\n\n"));
}

/** Starts all peers that this machine has, and says which it has not. */
async function startPeers(
  { psLiteDirectory }: PeersOptions,
  leave: (what: string, why: string) => void,
): Promise<RunningPeer[]> {
  const all: readonly (readonly [PeerDescription, () => Promise<PeerProgram>])[] = [
    ...PYTHON_PEERS.map((peer) => [peer, () => pythonPeer(peer.id)] as const),
    [PS_LITE, () => buildPsLitePeer(psLiteDirectory)],
  ];
  const peers: RunningPeer[] = [];
  for (const [description, program] of all) {
    try {
      peers.push(await startPeer(await program(), description));
    } catch (error) {
      leave(description.name, error instanceof Error ? error.message : String(error));
    }
  }
  return peers;
}

/** Measures one step on ours and on the broker alone, with both kinds of journals, and on every peer. */
async function compare(
  step: TrainingStep,
  peers: readonly RunningPeer[],
  hasC: boolean,
  rounds: number,
): Promise<StepTime[]> {
  const jobs: StepJob[] = [];
  try {
    const makers: StepMaker[] = [];
    for (const storage of ["file", "memory"] as const) {
      const job = await startStepJob(step, storage);
      jobs.push(job);
      if (hasC) makers.push(await job.startRaw());
      makers.push(job.maker);
      if (hasC) makers.push(...(await job.startC(["step"])));
    }
    for (const peer of peers) makers.push(await peer.maker(step));
    const options = { rounds, durationMs: DURATION_MS, warmUpMs: WARM_UP_MS, log: progress };
    return await measureSteps(step, makers, options);
  } finally {
    for (const job of jobs) await job[Symbol.asyncDispose]();
  }
}

function progress(line: string): void {
  console.error(line);
}

// An orderly exit ends what was started and removes its files.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
await main();
