// Proves, on a broker, that probing its storage leaves no stream behind: not after an answer, not when
// several hosts probe at one time, and not that of a host that died during its probe.
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { probeStorage } from "../../../src/actors/journal/streams.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";

const MIB = 1024 ** 2;
const SUBJECTS = new JobSubjects("j");

let broker: TestBroker;
let connection: NatsConnection;
let manager: JetStreamManager;

beforeEach(async () => {
  broker = await startTestBroker({ jetstreamConfig: "max_file_store: 64MB" });
  connection = await connect({ servers: broker.url });
  manager = await jetstreamManager(connection);
});

afterEach(async () => {
  await connection.close();
  await broker.remove();
});

async function streams(): Promise<string[]> {
  const names: string[] = [];
  for await (const name of manager.streams.names()) names.push(name);
  return names;
}

test("the broker says whether it has storage left", async () => {
  expect(await probeStorage(manager, SUBJECTS, "file", 32 * MIB)).toBe(true);
  expect(await probeStorage(manager, SUBJECTS, "file", 128 * MIB)).toBe(false);
  expect(await streams()).toEqual([]);
});

test("several that ask at one time all get their answer", async () => {
  const sizes = [16, 16, 24, 24, 128].map((size) => size * MIB);
  const answers = sizes.map((bytes) => probeStorage(manager, SUBJECTS, "file", bytes));
  expect(await Promise.all(answers)).toEqual([true, true, true, true, false]);
  expect(await streams()).toEqual([]);
});

test("hosts that ask for the same over and over do not fail each other", async () => {
  const connections = await Promise.all(
    Array.from({ length: 3 }, () => connect({ servers: broker.url })),
  );
  const hosts = await Promise.all(connections.map((each) => jetstreamManager(each)));
  const ask = async (host: JetStreamManager): Promise<boolean[]> => {
    const answers: boolean[] = [];
    for (let i = 0; i < 40; i++) answers.push(await probeStorage(host, SUBJECTS, "file", MIB));
    return answers;
  };
  const answers = (await Promise.all(hosts.map(ask))).flat();
  await Promise.all(connections.map((each) => each.close()));
  expect(answers).toEqual(answers.map(() => true));
  expect(await streams()).toEqual([]);
});

test.each([8, 48])("a probe of %i MiB that a host left behind is removed", async (size) => {
  await manager.streams.add({
    name: SUBJECTS.storageProbeStream(),
    subjects: [SUBJECTS.storageProbe()],
    max_bytes: size * MIB,
  });
  expect(await probeStorage(manager, SUBJECTS, "file", 40 * MIB, 100)).toBe(true);
  expect(await streams()).toEqual([]);
});
