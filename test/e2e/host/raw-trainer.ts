import type { NatsConnection } from "@nats-io/transport-node";
import { expect } from "vitest";
import {
  bytesOf,
  decodeMessage,
  draftRecord,
  type ErrorCode,
  encodeMessage,
  ensureError,
  type Fields,
  JobSubjects,
  type LifecycleVerb,
  parseAnswers,
  sealMessage,
  throwIfError,
} from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { control } from "./control.ts";

/** Of the job that tests make. */
const SUBJECTS = new JobSubjects("j");

/** The reply to a lifecycle request without a client. Asks again while the error says that a retry can help. */
export async function askRaw(
  raw: NatsConnection,
  trainer: string,
  verb: LifecycleVerb,
  fields: Fields,
): Promise<Fields> {
  for (;;) {
    try {
      return await askOnce(raw, trainer, verb, fields);
    } catch (error) {
      if (!ensureError(error).retryable) throw error;
    }
  }
}

async function askOnce(
  raw: NatsConnection,
  trainer: string,
  verb: LifecycleVerb,
  fields: Fields,
): Promise<Fields> {
  const reply = `${SUBJECTS.inbox(trainer)}.${Math.random()}`;
  const answer = raw.subscribe(reply, { max: 1, timeout: HANG_MS });
  raw.publish(SUBJECTS.lifecycle(trainer, verb), encodeMessage(fields), { reply });
  for await (const message of answer) {
    const { fields: entries } = decodeMessage(message.data);
    throwIfError(entries);
    return entries;
  }
  throw new Error(`${verb}: expected a reply`);
}

/** Where a trainer's pushes to "count", a parameter of one int64, go. */
export function additionSubject(trainer: string): string {
  return SUBJECTS.log(0, trainer, "push", "count", 0);
}

/** A record that adds 1, and whose outcome goes to `reply`, if one is named. */
export function addition(session: number, n: number, reply = ""): Uint8Array {
  return additionOf(BigInt64Array.of(1n), session, n, reply);
}

/** A record that adds these elements; with more than one it is rejected. */
export function additionOf(
  elements: BigInt64Array,
  session: number,
  n: number,
  reply = "",
): Uint8Array {
  const head = { verb: "push", session, n, done: n - 1, reply, epoch: 1 } as const;
  const operation = { op: "mix", alpha: 1, beta: 1 } as const;
  const data = bytesOf(elements);
  const draft = draftRecord({ ...head, dtype: "int64", operation }, data.length);
  draft.data.set(data);
  return sealMessage(draft);
}

/** Waits until an addition is stored; what becomes of it is the fold's matter. */
export async function storeAddition(
  raw: NatsConnection,
  trainer: string,
  session: number,
  n: number,
  reply = "",
): Promise<void> {
  const ack = await raw.request(additionSubject(trainer), addition(session, n, reply), {
    timeout: HANG_MS,
  });
  const { stream } = ack.json<{ stream?: string }>();
  if (stream !== "PS_j_0") throw new Error(`expected a PubAck; received ${ack.string()}`);
}

/** Stores an addition and waits for its outcome: the code of its rejection, or undefined if it was applied. */
export async function outcomeOfAddition(
  raw: NatsConnection,
  trainer: string,
  session: number,
  n: number,
): Promise<ErrorCode | undefined> {
  const reply = `${SUBJECTS.inbox(trainer)}.${Math.random()}`;
  const answer = raw.subscribe(reply, { max: 1, timeout: HANG_MS });
  await storeAddition(raw, trainer, session, n, reply);
  for await (const message of answer) {
    const { outcomes } = parseAnswers(decodeMessage(message.data));
    expect(outcomes).toMatchObject([{ n }]);
    return outcomes[0]?.code;
  }
  throw new Error(`addition ${n} of ${trainer}: expected its outcome`);
}

/** How many trainers the job's first shard remembers, as its status says. */
export async function rememberedTrainers(job: TestJob): Promise<number> {
  const { shards } = (await control(job, "hosts", {})) as {
    shards: { senders: { trainers: number } }[];
  };
  return shards[0]?.senders.trainers ?? 0;
}
