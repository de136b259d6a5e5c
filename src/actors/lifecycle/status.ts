import {
  type Fields,
  laterPosition,
  type Position,
  parametersPerRequest,
  parseStatusRequest,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/index.ts";
import { jobRecord, type Lifecycle, type ShardPosition } from "./machine.ts";
import { effectiveState, infoOf, type Parameter, readyAt } from "./parameter.ts";
import type { LifecycleDeps } from "./service.ts";

/** Parameters as the catalog has them, whatever their state. */
interface Found {
  readonly parameters: readonly (Parameter | undefined)[];
  readonly more: boolean;
}

const START: Position = { generation: 1, seq: 0 };

/**
 * Replies with the job's state and the parameters asked for: by name, or a page in order of names. Only
 * parameters that are ready or being initialized are shown, none whose initialization ended without a
 * finish. `at` holds the ends of the journals when the job and the parameters shown became ready.
 */
export async function status(deps: LifecycleDeps, fields: Fields): Promise<Fields> {
  return { ...(await readStatus(deps, parseStatusRequest(fields))) };
}

/** As {@link status}, for a request that was parsed already. */
export async function readStatus(
  deps: LifecycleDeps,
  request: StatusRequest,
): Promise<StatusReply> {
  const { catalog } = deps.ledger;
  let isFresh = false;
  if (request.names !== undefined) {
    const job = await jobRecord.read(deps);
    isFresh = await catalog.follow(job);
    const known = request.names.map((name) => catalog.get(name));
    // What is ready stays as it is, unless the job is revised.
    if (known.every((parameter) => parameter && effectiveState(parameter, job) === "ready")) {
      return replyOf(deps, request, { parameters: known, more: false }, job);
    }
  }
  const asksForAny = request.names !== undefined || request.limit !== undefined;
  if (asksForAny && !isFresh) await catalog.refresh();
  // Read last, so that it is not older than the `jobEpoch` in the parameters' records.
  const job = await jobRecord.read(deps);
  for (let after = request.after ?? ""; ; ) {
    const found = find(deps, { ...request, after });
    const reply = replyOf(deps, request, found, job);
    const last = found.parameters.at(-1);
    // A page without any parameter to show must not look like the last one.
    if (!found.more || reply.parameters.length > 0 || last === undefined) return reply;
    after = last.declaration.name;
  }
}

function replyOf(
  deps: LifecycleDeps,
  request: StatusRequest,
  found: Found,
  job: Lifecycle,
): StatusReply {
  const alive = found.parameters.map((parameter) =>
    parameter !== undefined && effectiveState(parameter, job) !== "uninitialized"
      ? parameter
      : null,
  );
  const counted = alive.filter((parameter) => parameter !== null);
  const { epoch, trainer, at } = job.context;
  const { shards } = deps.job;
  return {
    state: job.state,
    epoch,
    by: trainer,
    shards,
    parameters: (request.names === undefined ? counted : alive).map(
      (parameter) => parameter && infoOf(parameter, job),
    ),
    more: found.more,
    at: latestPositions(shards, [at, ...counted.map((parameter) => readyAt(parameter, job))]),
  };
}

/** A page is cut where the broker takes no larger reply; names are answered whole. */
function find(deps: LifecycleDeps, request: StatusRequest): Found {
  const { catalog } = deps.ledger;
  const { names, after = "", limit } = request;
  if (names !== undefined) {
    return { parameters: names.map((name) => catalog.get(name)), more: false };
  }
  if (limit === undefined) return { parameters: [], more: false };
  return catalog.page(after, Math.min(limit, parametersPerRequest(deps.maxPayloadBytes)));
}

/** The latest position on each shard; empty if none is known at all. */
function latestPositions(
  shards: number,
  lists: readonly (readonly ShardPosition[])[],
): readonly Position[] {
  if (lists.every((list) => list.length === 0)) return [];
  const latest: Position[] = new Array(shards).fill(START);
  for (const list of lists) {
    for (const { shard, generation, seq } of list) {
      latest[shard] = laterPosition(latest[shard], { generation, seq });
    }
  }
  return latest;
}
