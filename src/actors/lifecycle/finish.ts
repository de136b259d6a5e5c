import {
  type Fields,
  type FinishRequest,
  PserverError,
  parseFinishRequest,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { requireBlocks, requireStorage } from "./block-check.ts";
import { type Claimant, hasFinished, requireSelected } from "./claimant.ts";
import type { LifecycleDeps } from "./deps.ts";
import { dropOrphans } from "./host-records.ts";
import { jobRecord } from "./lifecycle-record.ts";
import { advance, type Lifecycle, type LifecycleEvent, type ShardPosition } from "./machine.ts";
import { type Parameter, requireOwn } from "./parameter.ts";
import { changeParameter, parameterRecord, requireKnown } from "./parameter-record.ts";
import { requireSession } from "./sessions.ts";

/**
 * Finishes an initialization, of the job or of one parameter, once every declared block exists, and
 * replies with the ends of the journals at that moment; with journals in memory once a snapshot holds them. A repeat by the session that finished gets the
 * same reply.
 */
export async function finish(
  deps: LifecycleDeps,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const request = parseFinishRequest(fields);
  const session = await requireSession(deps, trainer, fields);
  const claimant = { trainer, session, epoch: request.epoch };
  const { parameter } = request;
  const finished =
    parameter === undefined
      ? await finishJob(deps, claimant, request)
      : await finishParameter(deps, claimant, request, parameter);
  const { epoch, at } = finished.context;
  return { state: finished.state, epoch, at };
}

async function finishJob(
  deps: LifecycleDeps,
  claimant: Claimant,
  request: FinishRequest,
): Promise<Lifecycle> {
  // A declaration written after this new revision of the job does not count, however late it comes.
  const { result: seen, revision: sealed } = await jobRecord.change(deps, (job) =>
    hasFinished(job, claimant) ? job : { ...admitted(job, claimant) },
  );
  await deps.ledger.catalog.refresh();
  const parameters = deps.ledger.catalog.all();
  const job = hasFinished(seen, claimant)
    ? seen
    : await concludeJob(deps, claimant, request, parameters, sealed);
  await dropOrphans(deps, parameters, job);
  return job;
}

async function concludeJob(
  deps: LifecycleDeps,
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
  const shards = Array.from({ length: deps.job.shards }, (_, shard) => shard);
  await requireStorage(deps, [...declared, ...own]);
  const at = await requireBlocks(deps, declared, request.at, shards);
  await storeInitialized(deps, at);
  const conclusion: LifecycleEvent = { type: "FINISH", ...claimant, at, sealed };
  const { result } = await jobRecord.change(deps, (job) =>
    advance(admitted(job, claimant), conclusion),
  );
  return result;
}

async function finishParameter(
  deps: LifecycleDeps,
  claimant: Claimant,
  request: FinishRequest,
  name: string,
): Promise<Lifecycle> {
  const admit = (found: Parameter | undefined): Parameter => {
    const known = requireOwn(requireKnown(found, name));
    admitted(known.lifecycle, claimant, name);
    return known;
  };
  const known = admit(await parameterRecord(name).read(deps));
  let { lifecycle } = known;
  if (!hasFinished(lifecycle, claimant)) {
    await requireStorage(deps, [known]);
    const at = await requireBlocks(deps, [known], request.at, []);
    await storeInitialized(deps, at);
    const conclusion: LifecycleEvent = { type: "FINISH", ...claimant, at, sealed: 0 };
    const finished = await changeParameter(deps, name, (found) => {
      const current = admit(found);
      const after = advance(current.lifecycle, conclusion);
      return after === current.lifecycle ? current : { ...current, lifecycle: after };
    });
    deps.ledger.catalog.note([finished]);
    lifecycle = finished.lifecycle;
  }
  await dropOrphans(deps, [{ ...known, lifecycle }], await jobRecord.read(deps));
  return lifecycle;
}

/**
 * Has the shards store what was initialized, if a journal in memory is all that holds it: a record that says that
 * something is initialized lies on file, and must not outlive the blocks.
 */
async function storeInitialized(
  { job, owners }: LifecycleDeps,
  at: readonly ShardPosition[],
): Promise<void> {
  if (job.journal !== "memory") return;
  await mapConcurrently(
    at,
    ({ shard, ...position }) => owners.snapshot(shard, position),
    at.length,
  );
}

/** Returns the lifecycle if the claimant initializes it or has finished it; @throws as {@link requireSelected}. */
function admitted(lifecycle: Lifecycle, claimant: Claimant, parameter?: string): Lifecycle {
  if (!hasFinished(lifecycle, claimant)) requireSelected(lifecycle, claimant, parameter);
  return lifecycle;
}
