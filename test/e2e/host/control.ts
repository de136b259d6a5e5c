import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection, RequestError } from "@nats-io/transport-node";
import {
  asMap,
  type ControlVerb,
  decodeMessage,
  encodeMessage,
  type Fields,
  JobSubjects,
  PserverError,
  throwIfError,
} from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const POLL_MS = 20;

/**
 * Asks whichever host answers, as the command does, and again while nobody answers and after errors that
 * pass: a host whose broker has just come back may have lost requests of its own.
 * @throws any other error in the reply.
 */
export async function control(job: TestJob, verb: ControlVerb, fields: Fields): Promise<Fields> {
  const subjects = new JobSubjects(job.job);
  const inboxPrefix = subjects.inbox("operator");
  const connection = await connect({ servers: job.broker.url, inboxPrefix });
  try {
    const subject = subjects.control("operator", verb);
    return await persist(() => ask(connection, subject, fields));
  } finally {
    await connection.close();
  }
}

async function ask(connection: NatsConnection, subject: string, fields: Fields): Promise<Fields> {
  const reply = await connection.request(subject, encodeMessage(fields), { timeout: HANG_MS });
  const message = decodeMessage(reply.data);
  throwIfError(message.fields);
  return message.fields;
}

/** Repeats a request until it succeeds, or fails for a reason that does not pass. */
async function persist(attempt: () => Promise<Fields>): Promise<Fields> {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPassing(error) || performance.now() > deadline) throw error;
      await delay(POLL_MS);
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof RequestError) return error.isNoResponders();
  return error instanceof PserverError && error.retryable;
}

/** What the owner of a shard says of it. */
export async function shardStatus(job: TestJob, shard = 0): Promise<Fields> {
  const { shards } = await control(job, "hosts", {});
  return asMap((shards as unknown[])[shard], "shard");
}

/** Waits until the watermark of a shard covers all that is folded. */
export async function untilWatermarkReached(job: TestJob, shard = 0): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    const now = await shardStatus(job, shard);
    if (now["state"] === "serving" && now["markedSeq"] === now["seq"]) return;
    if (performance.now() > deadline) throw new Error(`watermark behind: ${JSON.stringify(now)}`);
    await delay(POLL_MS);
  }
}

/** Has all shards snapshotted, and waits for it. */
export async function snapshotAll(job: TestJob): Promise<void> {
  await control(job, "snapshot", {});
}
