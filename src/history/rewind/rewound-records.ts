import type { Lifecycle } from "../../actors/lifecycle/machine.ts";
import type { Parameter } from "../../actors/lifecycle/parameter.ts";
import { comparePositions, type Position } from "../../protocol/index.ts";

/** What the records of a job say of its lifecycle. */
export interface LifecycleRecords {
  readonly job: Lifecycle;
  readonly parameters: readonly Parameter[];
}

/**
 * The records of a job whose shards go on from a cut. A parameter that was ready there is ready, under the epoch
 * that it had; any other is to be initialized anew, under a higher epoch than it ever had. The job is
 * initialized if it was so at the cut.
 * @param found the parameters as the shards show them at the cut.
 */
export function rewoundRecords(
  { job, parameters: known }: LifecycleRecords,
  found: readonly Parameter[],
  cut: readonly Position[],
): LifecycleRecords {
  const knownByName = new Map(known.map((each) => [each.declaration.name, each]));
  const isReady = wasReady(job, knownByName, found, cut);
  const parameters = new Map(known.map((each) => [each.declaration.name, gone(each)]));
  for (const each of found) {
    const { name } = each.declaration;
    const before = knownByName.get(name);
    const isOfUnfinished = !isReady && before !== undefined && before.jobEpoch !== 0;
    const hasBlocks = each.lifecycle.state === "ready" && !isOfUnfinished;
    const blocksMax = Math.max(each.blocksMax, before?.blocksMax ?? 0);
    const epoch = Math.max(each.lifecycle.context.epoch, before?.lifecycle.context.epoch ?? 0);
    const revision = before?.revision ?? 0;
    const after = { ...each, blocksMax, revision };
    parameters.set(name, hasBlocks ? after : gone(after, epoch));
  }
  const { context } = job;
  // Makes hosts read the parameters again that they know as ready.
  const revised = context.revised + 1;
  const state = isReady ? "ready" : "uninitialized";
  const epoch = isReady ? Math.max(1, context.epoch) : context.epoch;
  return {
    job: { state, context: { ...context, epoch, at: [], revised } },
    parameters: [...parameters.values()],
  };
}

/** Whether the job was initialized at the cut. */
function wasReady(
  job: Lifecycle,
  known: ReadonlyMap<string, Parameter>,
  found: readonly Parameter[],
  cut: readonly Position[],
): boolean {
  if (job.state === "ready") {
    return job.context.at.every((ended) => {
      const at = cut[ended.shard];
      return at !== undefined && comparePositions(at, ended) >= 0;
    });
  }
  // A rewind to before its initialization is undone: the records do not know of it any more.
  return found.some(
    ({ declaration, lifecycle }) =>
      lifecycle.state === "ready" && known.get(declaration.name)?.lifecycle.state !== "ready",
  );
}

/** The parameter with no initialization under way or completed. */
function gone(parameter: Parameter, epoch: number = parameter.lifecycle.context.epoch): Parameter {
  const context = { ...parameter.lifecycle.context, epoch, at: [], sealed: 0 };
  return { ...parameter, jobEpoch: 0, lifecycle: { state: "uninitialized", context } };
}
