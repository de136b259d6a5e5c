/** Names of the files of a trainer in the directory of messages; of a shell's expression for the rank, too. */
export const logNames = {
  stdout: (rank: number | string) => `rank-${rank}.out`,
  stderr: (rank: number | string) => `rank-${rank}.err`,
  /** Its exit code and how often it was started again; there once it has ended for good. */
  end: (rank: number | string) => `rank-${rank}.end`,
};
