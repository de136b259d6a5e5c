/** Names of a trainer's files in the log directory. The rank may be a shell expression. */
export const logNames = {
  stdout: (rank: number | string) => `rank-${rank}.out`,
  stderr: (rank: number | string) => `rank-${rank}.err`,
  /** Exit code and number of restarts; written when the trainer has ended for good. */
  end: (rank: number | string) => `rank-${rank}.end`,
  /** Where torch's trainers meet: the address of rank 0's machine, and a port. */
  meeting: "meeting",
};
