// Proves, on a broker, what becomes of a journal stream that an owner made after it had been deposed: in
// memory it goes, so that the subjects are free for the stream that counts; on file none is ever removed.
import { jetstream } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Journal } from "../../../src/actors/journal/journal.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";

const SUBJECTS = new JobSubjects("j");

let broker: TestBroker;
let connection: NatsConnection;

beforeEach(async () => {
  broker = await startTestBroker();
  connection = await connect({ servers: broker.url });
});

afterEach(async () => {
  await connection.close();
  await broker.remove();
});

async function journalIn(storage: "file" | "memory", shard = 0): Promise<Journal> {
  const client = jetstream(connection);
  const manager = await client.jetstreamManager();
  const synchronization = { mode: "async" } as const;
  const settings = { storage, bytesMax: 1024 ** 2, replicas: 1, rules: 1, synchronization };
  return new Journal({ manager, client, subjects: SUBJECTS, settings, shard });
}

test("one in memory makes room for the next generation", async () => {
  const [journal, other] = [await journalIn("memory"), await journalIn("memory", 1)];
  await other.open(1, 1);
  await journal.open(1, 1);
  await journal.open(3);
  expect(await journal.info(1)).toBeUndefined();
  expect(await journal.append({ verb: "rules", rules: 1 })).toEqual({ generation: 3, seq: 1 });
  expect(await other.info(1)).toMatchObject({ lastSeq: 1 });
});

test("one in memory does not push out a later generation", async () => {
  const journal = await journalIn("memory");
  await journal.open(2, 1);
  await expect(journal.open(1, 1)).rejects.toMatchObject({ name: "PserverError" });
  expect(await journal.info(2)).toMatchObject({ lastSeq: 1 });
});

test("one on file stays", async () => {
  const journal = await journalIn("file");
  await journal.open(1, 1);
  await expect(journal.open(2)).rejects.toMatchObject({ name: "PserverError" });
  expect(await journal.info(1)).toMatchObject({ lastSeq: 1 });
});

test("is made once by owners that make it at one time", async () => {
  const journal = await journalIn("file");
  const made = await Promise.allSettled([1, 2, 3].map(() => journal.open(1, 1)));
  expect(made.some(({ status }) => status === "fulfilled")).toBe(true);
  expect(await journal.open(1, 1)).toMatchObject({ firstSeq: 1 });
});
