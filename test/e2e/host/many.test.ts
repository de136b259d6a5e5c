// Proves the two scenes that a model with many parts and many trainers makes: a thousand parameters
// of all sizes over ten hosts, updated in any order and read back in the order asked for; and four
// trainers that create the same parameter at once, one of them late, of which exactly one does.
import { afterEach, describe, expect, test } from "vitest";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const CALL = { timeoutMs: HANG_MS };

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

test("a thousand parameters over ten hosts", async () => {
  job = await TestJob.start({ shards: 16, leaseMs: 3_000, workers: 1 });
  await Promise.all(Array.from({ length: 10 }, (_, i) => job.host({ id: `host-${i}` })));
  const client = await job.trainer("a");
  const names = Array.from({ length: 1_000 }, (_, i) => `p_${i}`);
  const elements = (i: number): number => (i + 1) * 10;
  await client.beginInit();
  await Promise.all(
    names.map((name, i) =>
      client.initParam(name, new Float32Array(elements(i)).fill(i), { learningRate: 0.5 }, CALL),
    ),
  );
  await client.finishInit(CALL);
  const order = names
    .map((_, i) => i)
    .sort((a, b) => ((a * 7_919) % 1_000) - ((b * 7_919) % 1_000));
  for (let start = 0; start < order.length; start += 10) {
    const group = order.slice(start, start + 10);
    await Promise.all(
      group.map((i) =>
        client.sendGrads({ [`p_${i}`]: new Float32Array(elements(i)).fill(2) }, CALL),
      ),
    );
  }
  const asked = [...order].reverse().map((i) => `p_${i}`);
  const pulled = await client.getParams(asked, CALL);
  expect(pulled.map(({ name }) => name)).toEqual(asked);
  for (const { name, data } of pulled) {
    const i = Number(name.slice(2));
    // The matcher would take many seconds for five million elements.
    const right = data.length === elements(i) && data.every((value) => value === i - 1);
    expect(right, name).toBe(true);
  }
});

describe("exactly one of four trainers", () => {
  test("creates a parameter, two hundred times", async () => {
    job = await TestJob.start();
    await job.host();
    const clients = await Promise.all(["a", "b", "c", "late"].map((name) => job.trainer(name)));
    const create = async (at: number, round: number): Promise<bigint> => {
      const value = BigInt64Array.of(BigInt(at));
      const tensor = await clients[at]?.createIfNotAlreadyCreated(`round-${round}`, value);
      return BigInt(tensor?.data[0] ?? -1);
    };
    const winners = new Set<bigint>();
    for (let round = 0; round < 200; round++) {
      const early = [0, 1, 2].map((at) => create(at, round));
      await Promise.race(early);
      const late = create(3, round);
      const values = await Promise.all([...early, late]);
      expect(new Set(values).size, `round ${round}: ${values}`).toBe(1);
      winners.add(values[0] ?? -1n);
    }
    expect([...winners].every((winner) => winner >= 0n && winner <= 2n)).toBe(true);
  });

  test("initializes the job", async () => {
    job = await TestJob.start();
    await job.host();
    const clients = await Promise.all(["a", "b", "c", "late"].map((name) => job.trainer(name)));
    const selected = async (at: number): Promise<boolean> => {
      const client = clients[at];
      if (!(await client?.beginInit())) return false;
      await client?.initParam("w", Float32Array.of(at));
      await client?.finishInit();
      return true;
    };
    const early = [0, 1, 2].map(selected);
    await Promise.race(early);
    const all = await Promise.all([...early, selected(3)]);
    expect(all.filter((one) => one)).toHaveLength(1);
    const pulled = await Promise.all(clients.map((client) => client.pullFull("w")));
    for (const { data } of pulled) expect(data[0]).toBe(all.indexOf(true));
  });
});
