import { mapConcurrently } from "../concurrent.ts";
import { lackingOn } from "./block-check.ts";
import type { LifecycleDeps } from "./deps.ts";
import { jobRecord } from "./lifecycle-record.ts";
import { advance } from "./machine.ts";
import { effectiveState, type Parameter } from "./parameter.ts";
import { changeParameter } from "./parameter-record.ts";

/** What {@link takeBackLost} has taken back. */
export interface TakenBack {
  /** Names of the parameters, sorted. */
  readonly parameters: readonly string[];
  /** Whether the job is to be initialized anew, as nothing of it is left. */
  readonly isJob: boolean;
}

/**
 * Makes parameters that a shard has lost initializable again. Their records lie on file and say that they are
 * initialized, but the shard, which is served, lacks blocks of them: its journal was in memory. If no parameter
 * is left, the whole job is to be initialized anew; otherwise it stays initialized, and what is lost can be
 * created one by one. A repeat changes nothing.
 *
 * To be called only for a job with journals in memory: a shard on file that lacks blocks is stopped, and an
 * operator may get them back.
 */
export async function takeBackLost(deps: LifecycleDeps, shard: number): Promise<TakenBack> {
  const { catalog } = deps.ledger;
  await catalog.refresh();
  const job = await jobRecord.read(deps);
  const ready = catalog.all().filter((each) => effectiveState(each, job) === "ready");
  const lacking = await lackingOn(deps, ready, shard);
  const lost = ready.filter(({ declaration }) => lacking.has(declaration.name));
  const changed = await mapConcurrently(lost, (parameter) => takeBack(deps, parameter));
  const parameters = changed.flatMap((name) => name ?? []).sort();
  const isJob = await reviseJob(deps, parameters.length > 0);
  return { parameters, isJob };
}

/** Takes one parameter back; returns its name, or undefined if its record has changed since it was read. */
async function takeBack(deps: LifecycleDeps, parameter: Parameter): Promise<string | undefined> {
  const { name } = parameter.declaration;
  // One that was declared for the job has become ready with it, which its own record does not say.
  const ready = { ...parameter.lifecycle, state: "ready" } as const;
  const lifecycle = advance(ready, { type: "LOSE", isSomeLeft: false });
  const taken: Parameter = { ...parameter, jobEpoch: 0, lifecycle };
  const now = await changeParameter(deps, name, (known) => {
    return known === undefined || known.revision === parameter.revision ? taken : known;
  });
  deps.ledger.catalog.note([now]);
  return now.lifecycle.state === "uninitialized" ? name : undefined;
}

/**
 * Tells other hosts by the job's record that parameters which they know as ready have changed; if none is left,
 * ends the job's initialization. Returns whether it has ended that.
 */
async function reviseJob(deps: LifecycleDeps, hasChanged: boolean): Promise<boolean> {
  const { catalog } = deps.ledger;
  let isJob = false;
  await jobRecord.change(deps, async (job) => {
    isJob = false;
    if (job.state !== "ready") return job;
    await catalog.refresh();
    const isSomeLeft = catalog.all().some((each) => effectiveState(each, job) === "ready");
    if (isSomeLeft && !hasChanged) return job;
    isJob = !isSomeLeft;
    return advance(job, { type: "LOSE", isSomeLeft });
  });
  return isJob;
}
