import {
  type Fields,
  laterPosition,
  type Position,
  parseStatusRequest,
  type StatusReply,
  type StatusRequest,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { readJob } from "./job-record.ts";
import { PARAMETER_KEYS, parameterOfKey } from "./keys.ts";
import type { Lifecycle, ShardPosition } from "./machine.ts";
import { readParameter } from "./parameter-change.ts";
import { type Parameter, standing } from "./parameter-record.ts";
import { infoOf, readyAt } from "./replies.ts";
import type { Surroundings } from "./settings.ts";

/** Parameters as they were found, before it is known which of them count. */
interface Found {
  readonly parameters: readonly (Parameter | undefined)[];
  readonly more: boolean;
}

const NOWHERE: Position = { generation: 1, seq: 0 };

/**
 * The job's state and the parameters asked for: by name, or a page in order of names. A parameter
 * counts if it is ready or being initialized; of one whose initialization has ended without a
 * finish nothing is said. `at` is where the journals stood when the job, or the parameters named,
 * became ready.
 */
export async function status(around: Surroundings, fields: Fields): Promise<Fields> {
  return { ...(await readStatus(around, parseStatusRequest(fields))) };
}

/** As {@link status}, for a request that has been read. */
export async function readStatus(
  around: Surroundings,
  request: StatusRequest,
): Promise<StatusReply> {
  let after = request.after ?? "";
  for (;;) {
    const found = await find(around, { ...request, after });
    // Read last, so that it is never older than what the records say of it.
    const job = await readJob(around);
    const reply = replyOf(around, request, found, job);
    const last = found.parameters.at(-1);
    // A page of leftovers only must not look like the last one.
    if (!found.more || reply.parameters.length > 0 || last === undefined) return reply;
    after = last.declaration.name;
  }
}

function replyOf(
  around: Surroundings,
  request: StatusRequest,
  found: Found,
  job: Lifecycle,
): StatusReply {
  const alive = found.parameters.map((parameter) =>
    parameter !== undefined && standing(parameter, job) !== "uninitialized" ? parameter : null,
  );
  const counted = alive.filter((parameter) => parameter !== null);
  const { epoch, trainer, at } = job.context;
  const { shards } = around.job;
  return {
    state: job.state,
    epoch,
    by: trainer,
    shards,
    parameters: (request.names === undefined ? counted : alive).map((parameter) =>
      parameter === null ? null : infoOf(parameter, job),
    ),
    more: found.more,
    at: latestPositions(shards, [at, ...counted.map((parameter) => readyAt(parameter, job))]),
  };
}

async function find(around: Surroundings, request: StatusRequest): Promise<Found> {
  const { names, after = "", limit } = request;
  const read = (name: string): Promise<Parameter | undefined> => readParameter(around, name);
  if (names !== undefined) return { parameters: await mapConcurrently(names, read), more: false };
  if (limit === undefined) return { parameters: [], more: false };
  const keys = await around.records.keys(PARAMETER_KEYS);
  const following = keys.map(parameterOfKey).filter((name) => name > after);
  const page = following.sort(byCodeUnits).slice(0, limit);
  return {
    parameters: await mapConcurrently(page, read),
    more: following.length > page.length,
  };
}

/** The latest position on each shard; empty if none is known at all. */
function latestPositions(
  shards: number,
  lists: readonly (readonly ShardPosition[])[],
): readonly Position[] {
  if (lists.every((list) => list.length === 0)) return [];
  const latest: Position[] = new Array(shards).fill(NOWHERE);
  for (const list of lists) {
    for (const { shard, generation, seq } of list) {
      latest[shard] = laterPosition(latest[shard], { generation, seq });
    }
  }
  return latest;
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : 1;
}
