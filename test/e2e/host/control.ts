import { setTimeout as delay } from "node:timers/promises";
import { connect, type Msg, type NatsConnection, RequestError } from "@nats-io/transport-node";
import {
  asMap,
  type ControlVerb,
  decodeMessage,
  encodeMessage,
  type Fields,
  JobSubjects,
  throwIfError,
} from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const POLL_MS = 20;

/** Asks whichever host answers, as the command does. @throws the error in the reply. */
export async function control(job: TestJob, verb: ControlVerb, fields: Fields): Promise<Fields> {
  const subjects = new JobSubjects(job.job);
  const inboxPrefix = subjects.inbox("operator");
  const connection = await connect({ servers: job.broker.url, inboxPrefix });
  try {
    const subject = subjects.control("operator", verb);
    const reply = await request(connection, subject, encodeMessage(fields));
    const message = decodeMessage(reply.data);
    throwIfError(message.fields);
    return message.fields;
  } finally {
    await connection.close();
  }
}

/** The reply; a host that has not come back yet after its broker did is waited for. */
async function request(
  connection: NatsConnection,
  subject: string,
  body: Uint8Array,
): Promise<Msg> {
  const deadline = performance.now() + HANG_MS;
  while (true) {
    try {
      return await connection.request(subject, body, { timeout: HANG_MS });
    } catch (error) {
      const absent = error instanceof RequestError && error.isNoResponders();
      if (!absent || performance.now() > deadline) throw error;
      await delay(POLL_MS);
    }
  }
}

/** What the owner of a shard says of it. */
export async function shardStatus(job: TestJob, shard = 0): Promise<Fields> {
  const { shards } = await control(job, "hosts", {});
  return asMap((shards as unknown[])[shard], "shard");
}

/** Waits until the mark of a shard covers all that is folded. */
export async function untilMarked(job: TestJob, shard = 0): Promise<void> {
  const deadline = performance.now() + HANG_MS;
  for (;;) {
    const now = await shardStatus(job, shard);
    if (now["markedSeq"] === now["seq"]) return;
    if (performance.now() > deadline) throw new Error(`not marked: ${JSON.stringify(now)}`);
    await delay(POLL_MS);
  }
}

/** Has all shards snapshotted, and waits for it. */
export async function snapshotAll(job: TestJob): Promise<void> {
  await control(job, "snapshot", {});
}
