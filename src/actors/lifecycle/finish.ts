import {
  type Fields,
  type FinishRequest,
  PserverError,
  parseFinishRequest,
} from "../../protocol/index.ts";
import { requireBlocks, requireRoom } from "./block-check.ts";
import { requireOwn } from "./create.ts";
import { type Claimant, hasFinished, requireSelected } from "./holder.ts";
import { changeJob, readJob } from "./job-record.ts";
import { dropLeftovers } from "./leftovers.ts";
import { type Lifecycle, type LifecycleEvent, step } from "./machine.ts";
import {
  changeParameter,
  readAllParameters,
  readParameter,
  requireKnown,
} from "./parameter-change.ts";
import type { Parameter } from "./parameter-record.ts";
import { requireSession } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Ends an initialization, of the job or of one parameter, once every declared block is there, and
 * answers where the journals then stood. A repeat by the session that finished gets the same
 * answer.
 */
export async function finish(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const request = parseFinishRequest(fields);
  const session = await requireSession(around, trainer, fields);
  const claimant = { trainer, session, epoch: request.epoch };
  const { parameter } = request;
  const finished =
    parameter === undefined
      ? await finishJob(around, claimant, request)
      : await finishParameter(around, claimant, request, parameter);
  const { epoch, at } = finished.context;
  return { state: finished.state, epoch, at };
}

async function finishJob(
  around: Surroundings,
  claimant: Claimant,
  request: FinishRequest,
): Promise<Lifecycle> {
  const admit = (job: Lifecycle): Lifecycle => admitted(job, claimant);
  // Writing the job anew draws a line: a declare that writes after it does not count, however
  // long it was on its way.
  const touch = (job: Lifecycle): boolean => !hasFinished(job, claimant);
  const { result: seen, revision: sealed } = await changeJob(around, admit, { touch });
  const parameters = await readAllParameters(around);
  const job = touch(seen) ? await concludeJob(around, claimant, request, parameters, sealed) : seen;
  await dropLeftovers(around, parameters, job);
  return job;
}

async function concludeJob(
  around: Surroundings,
  claimant: Claimant,
  request: FinishRequest,
  parameters: readonly Parameter[],
  sealed: number,
): Promise<Lifecycle> {
  const declared = parameters.filter(
    ({ jobEpoch, revision }) => jobEpoch === claimant.epoch && revision < sealed,
  );
  if (declared.length === 0) {
    throw new PserverError(
      "EMPTY",
      `finish: no parameter has been declared in epoch ${claimant.epoch} of the job`,
      { trainer: claimant.trainer, epoch: claimant.epoch },
    );
  }
  const own = parameters.filter(({ jobEpoch, lifecycle }) => {
    return jobEpoch === 0 && lifecycle.state === "ready";
  });
  const shards = Array.from({ length: around.job.shards }, (_, shard) => shard);
  await requireRoom(around, [...declared, ...own]);
  const at = await requireBlocks(around, declared, request.at, shards);
  const conclusion: LifecycleEvent = { type: "FINISH", ...claimant, at, sealed };
  const { result } = await changeJob(around, (job) => step(admitted(job, claimant), conclusion));
  return result;
}

async function finishParameter(
  around: Surroundings,
  claimant: Claimant,
  request: FinishRequest,
  name: string,
): Promise<Lifecycle> {
  const admit = (found: Parameter | undefined): Parameter => {
    const known = requireOwn(requireKnown(found, name));
    admitted(known.lifecycle, claimant, name);
    return known;
  };
  const known = admit(await readParameter(around, name));
  let { lifecycle } = known;
  if (!hasFinished(lifecycle, claimant)) {
    await requireRoom(around, [known]);
    const at = await requireBlocks(around, [known], request.at, []);
    const conclusion: LifecycleEvent = { type: "FINISH", ...claimant, at, sealed: 0 };
    const finished = await changeParameter(around, name, (found) => {
      const current = admit(found);
      const after = step(current.lifecycle, conclusion);
      return after === current.lifecycle ? current : { ...current, lifecycle: after };
    });
    lifecycle = finished.lifecycle;
  }
  await dropLeftovers(around, [{ ...known, lifecycle }], await readJob(around));
  return lifecycle;
}

/** The lifecycle itself, if the claimant initializes it or has finished it; throws otherwise. */
function admitted(lifecycle: Lifecycle, claimant: Claimant, parameter?: string): Lifecycle {
  if (!hasFinished(lifecycle, claimant)) requireSelected(lifecycle, claimant, parameter);
  return lifecycle;
}
