import { access } from "node:fs/promises";
import { join } from "node:path";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { LineProcess } from "../line-process.ts";
import { rawStepsName } from "../steps/raw-steps.ts";
import type { StepMaker } from "../steps/step-times.ts";
import type { TrainingStep } from "../steps/training-step.ts";
import { descendants, signalAll } from "./descendants.ts";
import type { PeerDescription } from "./peers.ts";

const PROGRAM = join(packageRoot(), "bench", "peers", "peer.py");
/** The environment that scripts/setup-peers.sh makes. */
const ENVIRONMENT = join(packageRoot(), ".tools", "peers", "bin", "python");

/** A peer that runs, in processes of its own. */
export interface RunningPeer {
  readonly description: PeerDescription;
  /** Names and versions of what runs. */
  readonly versions: string;
  /** Creates the parameters of a step. */
  readonly maker: (step: TrainingStep) => Promise<StepMaker>;
  readonly stop: () => Promise<void>;
}

/** The program of a peer's trainer, which starts the peer's servers. */
export interface PeerProgram {
  readonly path: string;
  readonly args: readonly string[];
}

/** Returns the program of a peer in Python. */
export async function pythonPeer(id: string): Promise<PeerProgram> {
  return { path: await peersPython(), args: [PROGRAM, id] };
}

/**
 * Finds the Python that peers run with: `PEERS_PYTHON`, or that of scripts/setup-peers.sh, or the
 * system's.
 */
async function peersPython(): Promise<string> {
  const named = process.env["PEERS_PYTHON"];
  if (named !== undefined) return named;
  try {
    await access(ENVIRONMENT);
    return ENVIRONMENT;
  } catch {
    return "python3";
  }
}

/** Starts a peer and its servers. @throws an `Error` that says what is missing. */
export async function startPeer(
  { path, args }: PeerProgram,
  description: PeerDescription,
): Promise<RunningPeer> {
  const { name } = description;
  // Some peers poll without a pause, which would take a processor from whoever has its turn.
  const inTurn = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    signalAll(trainer.pid, "SIGCONT");
    try {
      return await work();
    } finally {
      signalAll(trainer.pid, "SIGSTOP");
    }
  };
  const variables = { PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1" };
  const trainer = LineProcess.start(path, args, variables);
  const stop = async (): Promise<void> => {
    signalAll(trainer.pid, "SIGCONT");
    await trainer.call("close").catch(() => undefined);
    await trainer.stop();
  };
  try {
    const [versions = ""] = await inTurn(() => trainer.call("open"));
    const maker = async (step: TrainingStep): Promise<StepMaker> => {
      await inTurn(() => trainer.call(...creation(step)));
      return {
        name,
        // Peers keep everything in memory.
        baseline: rawStepsName("memory"),
        processes: () =>
          descendants(trainer.pid).map((pid) => ({
            role: pid === trainer.pid ? "trainer" : "server",
            pid,
          })),
        run: async (durationMs) => {
          const found = await inTurn(() => trainer.numbers("run", durationMs));
          const [steps = Number.NaN, startMs = 0, endMs = 0] = found;
          return { steps, startMs, endMs };
        },
      };
    };
    return { description, versions: versions.replaceAll("_", " "), maker, stop };
  } catch (error) {
    await trainer.stop();
    throw error;
  }
}

function creation(step: TrainingStep): [string, ...number[]] {
  return step.kind === "dense"
    ? ["create_dense", step.parameters, step.elements]
    : ["create_rows", step.tableRows, step.rowElements, step.rows];
}
