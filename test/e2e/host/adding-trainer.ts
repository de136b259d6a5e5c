import { type ConnectOptions, connect } from "../../../src/client/index.ts";
import { ensureError } from "../../../src/protocol/index.ts";
import { RunningProgram } from "../../c/running-program.ts";
import type { BuiltLibrary } from "../../c/toolchain.ts";
import { HANG_MS } from "../../support/limits.ts";

/** What an update led to. */
interface Addition {
  /** The value that was read after it. */
  readonly read: number;
  /** Whether it was applied, or it is not known whether. */
  readonly isApplied: boolean;
}

/** A trainer that adds one to the parameter "steps" again and again, whatever happens to broker and host. */
export interface AddingTrainer {
  readonly session: () => number;
  /** Adds one and reads. */
  readonly add: () => Promise<Addition>;
  readonly end: () => Promise<void>;
}

/** A trainer by the TypeScript client in this process. */
export async function addingInTypeScript(
  urls: readonly string[],
  job: string,
  trainer: string,
  user: Partial<ConnectOptions> = {},
): Promise<AddingTrainer> {
  const options = { timeoutMs: HANG_MS };
  const client = await connect({ url: [...urls], job, trainer, ...options, ...user });
  const push = async (): Promise<boolean> => {
    try {
      await client.pushFull("steps", Float32Array.of(1), 1, 1, options);
      return true;
    } catch (error) {
      if (ensureError(error).code === "OUTCOME_UNKNOWN") return false;
      throw error;
    }
  };
  return {
    session: () => client.session,
    add: async () => {
      const isApplied = await push();
      const { data } = await client.pullFull("steps", options);
      return { read: Number(data[0]), isApplied };
    },
    end: () => client.close({ timeoutMs: 1 }),
  };
}

/** A trainer by the C library in a process of its own; `variables`: what its environment adds. */
export async function addingInC(
  library: BuiltLibrary,
  urls: readonly string[],
  job: string,
  trainer: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<AddingTrainer> {
  const path = await library.program("cluster");
  const program = new RunningProgram(path, [urls.join(","), job, trainer], variables);
  await program.lines("ready", 1);
  let session = 0;
  return {
    session: () => session,
    add: async () => {
      const [read, now, outcome] = (await program.ask("add")).split(" ");
      session = Number(now);
      return { read: Number(read), isApplied: outcome === "applied" };
    },
    end: async () => program.kill(),
  };
}
