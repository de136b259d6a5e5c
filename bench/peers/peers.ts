import type { Storage } from "../bed.ts";
import { TRAINING_STEPS, type TrainingStep } from "../steps/training-step.ts";

/** The steps of the comparison: of those of tiny tensors only the largest. */
export const COMPARED_STEPS: readonly TrainingStep[] = TRAINING_STEPS.filter(
  (step) => step.kind === "rows" || step.elements > 16 || step.parameters === 10_000,
);

/** Another system that holds parameters, and what it promises about an update that it has confirmed. */
export interface PeerDescription {
  /** As bench/peers/peer.py calls it, if its trainer is in Python. */
  readonly id: string;
  readonly name: string;
  readonly promises: string;
  /** The most parameters of a step that it makes within minutes; undefined if it makes all steps. */
  readonly parametersMax?: number;
}

/** Whether a peer makes a step. */
export function canMake({ parametersMax }: PeerDescription, step: TrainingStep): boolean {
  return step.kind === "rows" || parametersMax === undefined || step.parameters <= parametersMax;
}

/** The peers whose trainers are in Python, in the order of the table. */
export const PYTHON_PEERS: readonly PeerDescription[] = [
  {
    id: "redis",
    name: "Redis",
    promises:
      "in memory, lost with the server; no arithmetic: the trainer writes values; MSET is atomic",
  },
  {
    id: "ray",
    name: "Ray actor",
    promises:
      "in memory, lost with the actor; a repeated call is applied twice; each call is atomic",
  },
  {
    id: "torch-shared-memory",
    name: "PyTorch RPC, shared memory",
    promises:
      "in memory, lost with the server; a call that failed may have been applied; one machine",
  },
  {
    id: "torch-tcp",
    name: "PyTorch RPC, TCP, a message a tensor",
    promises: "in memory, lost with the server; a call that failed may have been applied",
  },
  {
    id: "tensorflow",
    name: "TensorFlow, parameter server",
    promises: "in memory, lost with the server; a step that failed may have been applied in part",
    // It builds an operation for each variable before the first step.
    parametersMax: 1_000,
  },
];

/** The peer whose trainer is compiled, where a user names a ps-lite. */
export const PS_LITE: PeerDescription = {
  id: "ps-lite",
  name: "ps-lite",
  promises:
    "in memory, lost with the server; a push that was not answered may have been applied; each message is atomic",
};

/** What ours promises, by the storage of its journals. */
export const OUR_PROMISES: Readonly<Record<Storage, string>> = {
  file: "on file, survives a crash of every process; applied exactly once; each record is a transaction",
  memory:
    "survives a crash of hosts and trainers; applied exactly once; each record is a transaction",
};
