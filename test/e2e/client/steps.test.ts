// Proves through real hosts what several trainers of one job see when they keep step: synchronous
// steps that apply one sum or mean, trainers that come late, leave or lag, backups whose gradients
// come too late, and reads of a bounded staleness.
import { connect } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  JobSubjects,
  type LifecycleVerb,
  parseEnterReply,
  parseJoinReply,
  type SynchronizationInput,
} from "../../../src/protocol/index.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";

/** Elements of 5 blocks, on all 4 shards. */
const LARGE = 1_300_000;

let job: TestJob;

afterEach(() => job.remove());

/** Trainers of a job, the first of which has initialized it with zeros. */
async function start(
  synchronization: SynchronizationInput,
  ...trainers: string[]
): Promise<Client[]> {
  return await startWith(LASTING_LEASE_MS, synchronization, ...trainers);
}

/** The same, with leases of this time. */
async function startWith(
  leaseMs: number,
  synchronization: SynchronizationInput,
  ...trainers: string[]
): Promise<Client[]> {
  job = await TestJob.start({ synchronization, leaseMs });
  await job.host();
  const clients = await Promise.all(trainers.map((trainer) => job.trainer(trainer)));
  const [first] = clients;
  await first?.beginInit();
  await first?.initParam("w", new Float32Array(2), { learningRate: 1 });
  await first?.initParam("large", new Float32Array(LARGE), { learningRate: 1 });
  const rows = { dtype: "float32", shape: [4, 1], data: new Float32Array(4) } as const;
  await first?.initParam("emb", rows, { learningRate: 1, sparse: true });
  await first?.finishInit();
  return clients;
}

async function values(client: Client | undefined, name = "w"): Promise<number[]> {
  return Array.from((await client?.pullFull(name, { timeoutMs: HANG_MS }))?.data ?? [], Number);
}

const w = (...gradient: number[]): { w: Float32Array } => ({ w: Float32Array.from(gradient) });
const applied = { lateBlocks: 0 };

test("a synchronous step applies the mean of all trainers' gradients, once", async () => {
  const clients = await start({ mode: "sync", trainers: 3 }, "a", "b", "c");
  expect(clients[0]?.synchronization).toEqual({
    mode: "sync",
    trainers: 3,
    backups: 0,
    reduce: "mean",
  });
  const large = new Float32Array(LARGE);
  for (let step = 1; step <= 4; step++) {
    const results = await Promise.all(
      clients.map((client, i) =>
        client.sendGrads({ ...w(3 * (i + 1), -3), large: large.slice().fill(3 * i) }),
      ),
    );
    expect(results).toEqual([applied, applied, applied]);
    // Each trainer's read waits until the step has closed: all see the same values.
    for (const client of clients) {
      expect(client.stepsEnded).toBe(step);
      expect(await values(client)).toEqual([-6 * step, 3 * step]);
      const { data } = await client.pullFull("large");
      expect(data.every((value) => value === -3 * step)).toBe(true);
    }
  }
  expect((await clients[0]?.getParams(["w", "large"]))?.map(({ version }) => version)).toEqual([
    5, 5,
  ]);
});

test("a step of several calls applies the sum, of rows and of whole parameters", async () => {
  const [a, b] = await start({ mode: "sync", trainers: 2, reduce: "sum" }, "a", "b");
  const one = Float32Array.of(1, 10);
  await a?.sendGrads(w(1, 2), { endStep: false });
  await a?.sendGrads({ emb: { rows: [0, 2], values: one } }, { endStep: false });
  await b?.sendGrads({ emb: { rows: [-2, 3], values: one } });
  // Nothing is applied before the last trainer has ended the step.
  expect(await values(a)).toEqual([0, 0]);
  await a?.endStep();
  expect(await values(a)).toEqual([-1, -2]);
  expect(await values(b, "emb")).toEqual([-1, 0, -11, -10]);
  // A step without a gradient of one trainer.
  await Promise.all([a?.endStep(), b?.sendGrads(w(5, 5))]);
  expect(await values(a)).toEqual([-6, -7]);
});

test("a waiting trainer is told for whom; one that leaves is not waited for; a late one continues with the rest", async () => {
  const [a, b] = await start({ mode: "sync", trainers: 2 }, "a", "b");
  await a?.sendGrads(w(1, 1));
  const early = await atDeadline(/have entered/, async (timeoutMs) =>
    a?.pullFull("w", { timeoutMs }),
  );
  expect(early).toMatchObject({
    code: "TIMEOUT",
    message: expect.stringContaining("1 of 2 trainers have entered"),
  });
  await b?.sendGrads(w(3, 3));
  expect(await values(a)).toEqual([-2, -2]);

  await a?.sendGrads(w(2, 2));
  const waiting = await atDeadline(/waits for "b"/, async (timeoutMs) =>
    a?.sendGrads(w(9, 9), { timeoutMs }),
  );
  expect(waiting).toMatchObject({
    code: "TIMEOUT",
    message: expect.stringContaining('waits for "b"'),
    details: { waitingFor: ["b"] },
  });
  await b?.exitSteps();
  expect(await values(a)).toEqual([-4, -4]);
  expect(await values(b)).toEqual([-4, -4]);
  await a?.sendGrads(w(1, 1));
  expect(await values(a)).toEqual([-5, -5]);

  const c = await job.trainer("c");
  const joining = c.sendGrads(w(4, 4));
  // Its first step is the one that is open then, which closes with both gradients or its own alone.
  await joining;
  expect(c.stepsEnded).toBe(4);
  await a?.sendGrads(w(2, 2));
  expect(await values(c)).toEqual([-8, -8]);
  expect(a?.stepsEnded).toBe(4);
  await c.close();
  await a?.sendGrads(w(1, 1));
  expect(await values(a)).toEqual([-9, -9]);
});

test("a trainer that dies is waited for no longer than its lease lasts", async () => {
  const [a] = await startWith(MORTAL_LEASE_MS, { mode: "sync", trainers: 2 }, "a");
  await enterAndDie("dead");
  await a?.sendGrads(w(1, 1));
  // Nobody renews the other's lease.
  expect(await values(a)).toEqual([-1, -1]);
  await a?.sendGrads(w(1, 1));
  expect(await values(a)).toEqual([-2, -2]);
});

test("steps continue when a host dies: each is applied once, as a whole", async () => {
  const clients = await startWith(MORTAL_LEASE_MS, { mode: "sync", trainers: 2 }, "a", "b");
  await job.host();
  const large = new Float32Array(LARGE).fill(2);
  const run = async (client: Client): Promise<void> => {
    for (let step = 1; step <= 12; step++) {
      const sending = client.sendGrads({ ...w(1, step), large });
      // In the middle of a step: the other trainer may have ended it, or not.
      if (step === 5 && client === clients[0]) await job.hosts[0]?.kill();
      expect(await sending).toEqual(applied);
      expect(await values(client)).toEqual([-step, (-step * (step + 1)) / 2]);
    }
  };
  await Promise.all(clients.map(run));
  const { data } = (await clients[0]?.pullFull("large")) ?? { data: new Float32Array(0) };
  expect(data.length).toBe(LARGE);
  expect(data.every((value) => value === -24)).toBe(true);
});

test("with a backup a step closes without the last one, whose gradient is counted as late", async () => {
  const [a, b] = await start({ mode: "sync", trainers: 1, backups: 1 }, "a", "b");
  await a?.sendGrads(w(1, 1));
  await a?.pullFull("w");
  // Both are members from here on, and b in step 2.
  expect(await b?.sendGrads(w(0, 0), { endStep: false })).toEqual(applied);
  expect(await a?.sendGrads(w(1, 1))).toEqual(applied);
  expect(await a?.sendGrads(w(1, 1))).toEqual(applied);
  expect(await values(a)).toEqual([-2.5, -2.5]);
  expect(await b?.sendGrads({ large: new Float32Array(LARGE).fill(1) })).toEqual({ lateBlocks: 5 });
  expect(b?.stepsEnded).toBe(2);
  // Its next gradient is of the step that the others are in.
  expect(await b?.sendGrads(w(4, 4))).toEqual(applied);
  expect(b?.stepsEnded).toBe(4);
  expect(await values(a)).toEqual([-6.5, -6.5]);
});

test("with bounded staleness a trainer runs ahead of the slowest by so many steps and no more", async () => {
  const [a, b] = await start({ mode: "ssp", trainers: 2, staleness: 1 }, "a", "b");
  await b?.sendGrads(w(0, 0), { endStep: false });
  await a?.sendGrads(w(1, 1));
  expect(await values(a)).toEqual([-1, -1]);
  await a?.sendGrads(w(1, 1));
  const reading = values(a);
  const early = await Promise.race([reading, values(b)]);
  expect(early).toEqual([-2, -2]);
  const held = await atDeadline(/waits for "b"/, async (timeoutMs) =>
    a?.pullPart("w", [[0]], { timeoutMs }),
  );
  expect(held).toMatchObject({
    code: "TIMEOUT",
    message: expect.stringContaining('waits for "b"'),
    details: { waitingFor: ["b"] },
  });
  await b?.sendGrads(w(10, 10));
  expect(await reading).toEqual([-12, -12]);
});

/** Becomes a member as a trainer does that is never heard of again. */
async function enterAndDie(trainer: string): Promise<void> {
  const subjects = new JobSubjects(job.job);
  const connection = await connect({
    servers: job.broker.url,
    inboxPrefix: subjects.inbox(trainer),
  });
  const ask = async (verb: LifecycleVerb, entries: Fields): Promise<Fields> => {
    const { data } = await connection.request(
      subjects.lifecycle(trainer, verb),
      encodeMessage(entries),
      { timeout: HANG_MS },
    );
    return decodeMessage(data).fields;
  };
  const { session } = parseJoinReply(await ask("join", { token: "t" }));
  parseEnterReply(await ask("enter", { session }));
  await connection.close();
}
