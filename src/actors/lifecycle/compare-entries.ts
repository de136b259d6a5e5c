import { isDeepStrictEqual } from "node:util";
import type { DeclaredParameter, EntryProblem, ShardKnowledge } from "../../protocol/index.ts";
import { JOB_KEY, MEMBERS_KEY, parameterKey, SESSION_KEY, SWEPT_KEY } from "./lock.ts";
import type { Lifecycle } from "./machine.ts";
import { effectiveState, type Parameter } from "./parameter.ts";

// What hosts tell a shard is written into an entry of the job's bucket before, and stays in the journal. So an entry
// that says less than a shard knows is not the one that was written last: the bucket has lost entries, or has an
// older one again. That is certain, because no request and no command takes an entry back without raising its
// `revised`.

/** The entries of a job's bucket that shards know of, as they were read after the shards were asked. */
export interface ComparedEntries {
  readonly job: Lifecycle;
  readonly parameter: (name: string) => Parameter | undefined;
  readonly membersRevision: number;
  /** The last session given. */
  readonly given: number;
  /** The session up to which ended ones were swept. */
  readonly swept: number;
}

/** Returns the entries that contradict what a shard knows. */
export function contradictions(
  entries: ComparedEntries,
  shard: number,
  known: ShardKnowledge,
): EntryProblem[] {
  const knows = (what: string): string => `shard ${shard} knows ${what}`;
  const problems: EntryProblem[] = [];
  const check = (key: string, isSound: boolean, problem: () => string): void => {
    if (!isSound) problems.push({ key, problem: problem() });
  };
  const { job } = entries;
  check(JOB_KEY, isJobSound(job, known), () => {
    const { epoch, revised } = { epoch: 0, revised: 0, ...known.job };
    const expected = `that the job was initialized in epoch ${epoch}, revised ${revised} times`;
    return `${knows(expected)}; found ${describe(job)}`;
  });
  const session = Math.max(known.sweptUpTo, known.job?.session ?? 0);
  check(SESSION_KEY, entries.given >= session, () => {
    return `${knows(`that session ${session} was given`)}; found session ${entries.given}`;
  });
  check(SWEPT_KEY, entries.swept >= known.sweptUpTo, () => {
    return `${knows(`of a sweep up to session ${known.sweptUpTo}`)}; found ${entries.swept}`;
  });
  check(MEMBERS_KEY, entries.membersRevision >= known.members.revision, () => {
    const { revision } = known.members;
    return `${knows(`the members of revision ${revision}`)}; found revision ${entries.membersRevision}`;
  });
  // A rewind may have given parameters lower epochs since the shard was told of the job.
  const isCurrent = (known.job?.revised ?? 0) === job.context.revised;
  for (const declared of known.parameters) {
    const problem = parameterProblem(entries, declared, isCurrent);
    if (problem === undefined) continue;
    const what = `the parameter under epoch ${declared.epoch}`;
    problems.push({ key: parameterKey(declared.name), problem: `${knows(what)}; ${problem}` });
  }
  return problems;
}

/** Whether the job's entry says at least that the job was initialized as the shard knows. */
function isJobSound({ state, context }: Lifecycle, { job }: ShardKnowledge): boolean {
  if (job === undefined || context.revised > job.revised) return true;
  return context.revised === job.revised && context.epoch === job.epoch && state === "ready";
}

/** Returns what is wrong with the entry of a declared parameter; undefined if nothing is. */
function parameterProblem(
  { job, parameter }: ComparedEntries,
  declared: DeclaredParameter,
  isCurrent: boolean,
): string | undefined {
  const entry = parameter(declared.name);
  if (entry === undefined) return "found no entry";
  const { lifecycle, layout, firstNumber } = entry;
  const { epoch, trainer, revised } = lifecycle.context;
  if (!isCurrent || epoch > declared.epoch) return undefined;
  if (epoch < declared.epoch) return `found epoch ${epoch}`;
  const { name, dtype, shape, config } = declared;
  const placed = { layout: declared.layout, firstNumber: declared.firstNumber };
  const wanted = { declaration: { name, dtype, shape, config }, ...placed };
  if (!isDeepStrictEqual(wanted, { declaration: entry.declaration, layout, firstNumber })) {
    return "found another declaration under the same epoch";
  }
  if (trainer !== declared.trainer) return `expected trainer ${declared.trainer}; found ${trainer}`;
  if (declared.initialized !== true || effectiveState(entry, job) === "ready") return undefined;
  // What a shard with its journal in memory has lost is taken back under the same epoch.
  const isTakenBack = lifecycle.state === "uninitialized" && revised > 0;
  return isTakenBack ? undefined : `expected it to be initialized; found ${lifecycle.state}`;
}

function describe({ state, context: { epoch, revised } }: Lifecycle): string {
  return `${state}, epoch ${epoch}, revised ${revised} times`;
}
