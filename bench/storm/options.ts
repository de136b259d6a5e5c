import { parseArgs } from "node:util";
import type { LearnerWork } from "./storm-place.ts";

/** What a storm is made of. */
export interface StormOptions {
  readonly minutes: number;
  readonly learners: number;
  readonly hosts: number;
  readonly seed: number;
  /** Faults of learners. */
  readonly faultsAnHour: number;
  /** Kills of hosts and of the broker, in the whole storm. */
  readonly hostKills: number;
  readonly brokerKills: number;
  readonly hostFlags: readonly string[];
  readonly work: LearnerWork;
}

const HELP = `usage: make storm STORM='[--minutes N] [--learners N] [--hosts N] [--seed N] [--faults N] [--quorum N]'

  --minutes N   how long each of the two runs is, without faults and with them (5)
  --learners N  learners, each a process with a link of its own (16)
  --hosts N     hosts of the job (2)
  --seed N      another seed, another storm (1)
  --faults N    faults of learners an hour (125)
  --quorum N    trainers for whom a round waits (half of the learners)`;

/** One kill of a host in so many minutes, and one of the broker, and one of each at least. */
const MINUTES_EACH = { host: 2, broker: 4 };

/** Reads the command line. @throws an `Error` for what it does not know. */
export function readStormOptions(
  args: readonly string[],
): StormOptions | { readonly help: string } {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: "string", default: "5" },
      learners: { type: "string", default: "16" },
      hosts: { type: "string", default: "2" },
      seed: { type: "string", default: "1" },
      faults: { type: "string", default: "125" },
      quorum: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return { help: HELP };
  const number = (
    name: "minutes" | "learners" | "hosts" | "seed" | "faults" | "quorum",
    least: number,
  ) => {
    const value = Number(values[name]);
    if (Number.isFinite(value) && value >= least) return value;
    throw new Error(`--${name}: expected a number of ${least} or more; received ${values[name]}`);
  };
  const minutes = number("minutes", 0.5);
  const learners = number("learners", 2);
  return {
    ...{ minutes, learners, hosts: number("hosts", 2), seed: number("seed", 0) },
    faultsAnHour: number("faults", 0),
    hostKills: Math.max(1, Math.floor(minutes / MINUTES_EACH.host)),
    brokerKills: Math.max(1, Math.floor(minutes / MINUTES_EACH.broker)),
    ...stormJob(values.quorum === undefined ? Math.ceil(learners / 2) : number("quorum", 1)),
  };
}

/** A job as users have it, with this quorum and the default grace, and a model as small as can be. */
export function stormJob(quorum: number): Pick<StormOptions, "hostFlags" | "work"> {
  return {
    hostFlags: ["--quorum", String(quorum)],
    work: {
      ...{ fragments: 4, tensors: 8, shape: [64, 64] },
      ...{ syncEvery: 24, encoding: "int8", stepTime: 0.1 },
    },
  };
}
