/** Another system that holds parameters, and what it promises about an update that it has confirmed. */
export interface PeerDescription {
  /** As bench/peers/peer.py calls it. */
  readonly id: string;
  readonly name: string;
  readonly promises: string;
}

/** The peers that are looked for, in the order of the table. */
export const PEERS: readonly PeerDescription[] = [
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
  },
];

/** What ours promises, by the storage of its journals. */
export const OUR_PROMISES: Readonly<Record<string, string>> = {
  "pserver, file":
    "on file, survives a crash of every process; applied exactly once; each record is a transaction",
  "pserver, memory":
    "survives a crash of hosts and trainers; applied exactly once; each record is a transaction",
};
