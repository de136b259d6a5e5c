// Proves that what hosts publish in a real etcd stays whole when many start at once, when one dies with
// keys that all need, and when two jobs want one prefix; and that the initialization's keys follow the
// record through every state, whatever stood there before.
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { EtcdLeases } from "../../../src/actors/job/etcd-leases.ts";
import { InitializationKeys, Publication } from "../../../src/actors/job/etcd-publication.ts";
import { type EtcdSpace, openEtcdSpace } from "../../../src/actors/job/etcd-space.ts";
import { BrokerProbe } from "../../../src/actors/job/leases.ts";
import { JOB_KEY } from "../../../src/actors/lifecycle/lock.ts";
import {
  advance,
  type Lifecycle,
  toLifecycleEntry,
  UNINITIALIZED,
} from "../../../src/actors/lifecycle/machine.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const LEASE_MS = 2_000;
const ANSWERS = { flush: async (): Promise<void> => undefined };

let etcd: TestEtcd;

beforeEach(async () => {
  etcd = await TestEtcd.start();
});

afterEach(async () => {
  await etcd.remove();
});

async function openSpace(job = "j"): Promise<EtcdSpace> {
  const space = await openEtcdSpace({ endpoints: [etcd.url] }, job, 2_000);
  onTestFinished(() => space.client.close());
  return space;
}

/** A host's publication, and the errors that it told. */
async function publish(
  host: number,
  options: { job?: string; space?: EtcdSpace; flush?: () => Promise<void> } = {},
): Promise<{ publication: Publication; errors: PserverError[] }> {
  const { job = "j", flush = ANSWERS.flush } = options;
  const { client, keys } = options.space ?? (await openSpace(job));
  const errors: PserverError[] = [];
  const publication = new Publication({
    client,
    keys,
    job,
    urls: [`nats://${host}:4222`],
    leaseMs: LEASE_MS,
    probe: new BrokerProbe({ flush }, 200),
    initialization: { show: async () => undefined },
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => publication.stop().catch(() => undefined));
  await publication.start();
  return { publication, errors };
}

async function published(): Promise<Record<string, string>> {
  const entries = await etcd.list("/ps");
  return Object.fromEntries(entries.map(({ key, value }) => [key, value]));
}

test("many hosts that start at once get an index each, and one identity", async () => {
  const spaces = await Promise.all(Array.from({ length: 6 }, () => openSpace()));
  expect(new Set(spaces.map(({ id }) => id))).toEqual(new Set([await etcd.read("/ps_id")]));
  await Promise.all(spaces.map((space, host) => publish(host, { space })));
  const { "/ps_id": _id, "/ps/job": job, "/ps_desired": desired, ...servers } = await published();
  expect(Object.keys(servers)).toEqual([0, 1, 2, 3, 4, 5].map((i) => `/ps/${i}`));
  expect(Object.values(servers).sort()).toEqual([0, 1, 2, 3, 4, 5].map((i) => `nats://${i}:4222`));
  expect([job, desired]).toEqual(["j", "6"]);
});

test("keys that end with a host are written again by another; its index goes to the next host", async () => {
  const { publication: first } = await publish(0);
  const { publication: second } = await publish(1);
  await first.stop();
  await etcd.until("/ps", (entries) => entries.length === 4);
  expect(await published()).toMatchObject({
    "/ps/1": "nats://1:4222",
    "/ps/job": "j",
    "/ps_desired": "1",
  });
  await publish(2);
  expect(await published()).toMatchObject({ "/ps/0": "nats://2:4222", "/ps_desired": "2" });
  await second.stop();
});

test("a host without its broker vanishes, and comes back with it", async () => {
  let lost = false;
  const flush = (): Promise<void> => (lost ? new Promise(() => undefined) : Promise.resolve());
  const { errors } = await publish(0, { flush });
  lost = true;
  await etcd.until("/ps/", (entries) => entries.length === 0);
  expect(errors[0]).toMatchObject({ code: "NO_BROKER" });
  lost = false;
  await etcd.until("/ps", (entries) => entries.length === 4);
});

test("of two jobs only one can have a prefix, and the other is refused", async () => {
  const late = await openSpace("k");
  const { publication } = await publish(0);
  await expect(openSpace("k")).rejects.toMatchObject({ code: "JOB_EXISTS" });
  await expect(publish(1, { job: "k", space: late })).rejects.toMatchObject({ code: "JOB_EXISTS" });
  await publication.stop();
  await publish(1, { job: "k", space: late });
  expect(await published()).toMatchObject({ "/ps/0": "nats://1:4222", "/ps/job": "k" });
});

test("an identity that somebody has damaged is refused by name", async () => {
  await etcd.put("/ps_id", "no identity");
  await expect(openSpace()).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("/ps_id"),
  });
});

test("lock and done follow the record through every state", async () => {
  const space = await openSpace();
  const leases = new EtcdLeases(space.client, space.keys.leases, LEASE_MS, {
    reach: async () => undefined,
  });
  const records = new MemoryBucket();
  const shown = new InitializationKeys(space, records);
  const show = async (lifecycle: Lifecycle): Promise<Record<string, string>> => {
    const revision = (await records.read(JOB_KEY))?.revision;
    const record = toLifecycleEntry(lifecycle);
    if (revision === undefined) await records.create(JOB_KEY, record);
    else await records.update(JOB_KEY, record, revision);
    await Promise.all([shown.show(), shown.show(), shown.show()]);
    const entries = await etcd.list("/init_ps/");
    return Object.fromEntries(entries.map(({ key, value }) => [key, value]));
  };
  const begin = (from: Lifecycle, trainer: string, session: number): Lifecycle =>
    advance(from, { type: "BEGIN", trainer, session, replace: true });
  const lock = (trainer: string, session: number, epoch: number): Record<string, string> => ({
    "/init_ps/lock": JSON.stringify({ trainer, session, epoch }),
  });

  // Of an earlier job under this prefix.
  await etcd.put("/init_ps/done", "1");
  await etcd.put("/init_ps/lock", "old");
  expect(await show(UNINITIALIZED)).toEqual({});
  await leases.claim("trainer.a", { owner: "session 1" });
  await leases.claim("trainer.b", { owner: "session 2" });
  const first = begin(UNINITIALIZED, "a", 1);
  expect(await show(first)).toEqual(lock("a", 1, 1));
  const second = begin(first, "b", 2);
  expect(await show(second)).toEqual(lock("b", 2, 2));
  await leases.release("trainer.b", { owner: "session 2" });
  expect(await etcd.list("/init_ps/")).toEqual([]);
  expect(await show(second)).toEqual({});
  await leases.claim("trainer.b", { owner: "session 2" });
  expect(await show(second)).toEqual(lock("b", 2, 2));
  const aborted = advance(second, { type: "ABORT", session: 2, epoch: 2, replace: false });
  expect(await show(aborted)).toEqual({});
  const third = begin(aborted, "a", 1);
  expect(await show(third)).toEqual(lock("a", 1, 3));
  const ready = advance(third, { type: "FINISH", session: 1, epoch: 3, at: [], sealed: 1 });
  expect(await show(ready)).toEqual({ "/init_ps/done": "1" });
  await etcd.put("/init_ps/done", "0");
  expect(await show(ready)).toEqual({ "/init_ps/done": "1" });
});
