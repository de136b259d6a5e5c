// Proves federated averaging with real hosts and trainers: a preset fills the settings that status shows, those who are drawn
// for a round are told so before they train and others are refused, a median bears a trainer that sends nonsense, a host
// that is killed in the middle of a round loses nothing, and the command `ledger` has a receipt for every contribution.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import type { SynchronizationInput } from "../../../src/protocol/index.ts";
import { sampledMembers } from "../../../src/protocol/sampling.ts";
import { run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";

const IDS = ["p0", "p1", "p2", "p3", "p4", "p5"];
const ROUNDS = 3;
const WORK = { steps: 1, tokens: 20 };

let job: TestJob;

beforeEach(async () => {
  const synchronization: SynchronizationInput = {
    mode: "diloco",
    preset: "fedavg",
    sample: 3,
    merge: "median",
  };
  job = await TestJob.start({ shards: 2, synchronization, leaseMs: LASTING_LEASE_MS });
});

afterEach(() => job.remove());

async function initialize(client: Client): Promise<void> {
  await client.beginInit();
  const config = { fragment: "f", optimizer: "sgd", learningRate: 1 } as const;
  await client.initParams({ w: new Float32Array(4) }, config);
  await client.finishInit();
}

function commandOptions(): { environment: Record<string, string> } {
  return { environment: { NATS_URL: job.broker.url, PSERVER_JOB: job.job } };
}

/** Runs a command on the job; returns what it has printed as JSON, line by line. */
async function jsonOf(...args: string[]): Promise<Record<string, unknown>[]> {
  const { code, stdout, stderr } = await run([...args, "--json"], commandOptions());
  expect(stderr).toBe("");
  expect(code).toBe(0);
  const lines = stdout.trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("a federation trains with those who are drawn, and everybody has a receipt", async () => {
  let host = await job.host();
  const clients = await Promise.all(IDS.map((id) => job.trainer(id)));
  const [first] = clients;
  if (first === undefined) throw new Error("no client");
  await initialize(first);
  for (const each of clients) await each.enterRounds();
  let value = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const drawn = sampledMembers({ job: job.job, fragment: "f", round }, IDS, 3);
    const told = await Promise.all(
      clients.map((each) => each.sampling("f", { minVersion: round - 1 })),
    );
    expect(told).toEqual(IDS.map((id) => ({ round, isSampled: drawn.has(id) })));
    const [liar = ""] = drawn;
    let sent = 0;
    for (const [i, id] of IDS.entries()) {
      const w = new Float32Array(4).fill(id === liar ? 1e30 : i);
      const contributed = clients[i]?.contribute("f", { w }, { base: round - 1, ...WORK });
      if (!drawn.has(id)) {
        await expect(contributed).rejects.toMatchObject({ code: "NOT_SAMPLED" });
        continue;
      }
      expect(await contributed).toEqual({ round });
      sent += 1;
      if (round === 2 && sent === 2) {
        await job.crash(host);
        host = await job.host();
      }
    }
    const { tensors } = await first.pullFragment("f", { minVersion: round });
    // The median of two honest ones and of the liar is the larger honest one.
    const honest = IDS.flatMap((id, i) => (drawn.has(id) && id !== liar ? [i] : []));
    value -= Math.max(...honest);
    expect(tensors[0]?.data).toEqual(new Float32Array(4).fill(value));
  }
  const lines = await jsonOf("ledger");
  const sums = lines.at(-1) as { sound: boolean; receipts: Record<string, unknown>[] };
  expect(sums.sound).toBe(true);
  expect(lines).toHaveLength(1 + IDS.length * ROUNDS);
  for (const { trainer, processed, merged, dropped, rounds } of sums.receipts) {
    const counts = [1, 2, 3].filter((round) => {
      const named = { job: job.job, fragment: "f", round };
      return sampledMembers(named, IDS, 3).has(String(trainer));
    });
    expect(rounds).toEqual(counts);
    expect(processed).toEqual({ contributions: ROUNDS, steps: 3, tokens: 60 });
    expect(merged).toMatchObject({ contributions: counts.length });
    expect(dropped).toMatchObject({ contributions: ROUNDS - counts.length });
    const client = clients[IDS.indexOf(String(trainer))];
    // What a trainer is told is what the journal says.
    expect((await client?.fragments())?.account).toMatchObject({ processed, merged, dropped });
  }
  const [status] = await jsonOf("status");
  expect(status?.["synchronization"]).toMatchObject({ quorum: 3, weights: "tokens", sample: 3 });
  const { stdout, stderr } = await run(["ledger", "--trainer", "p0"], commandOptions());
  expect(stdout).toContain("FRAGMENT");
  const { account } = await first.fragments();
  const { contributions } = account.dropped;
  expect(stdout.match(/dropped: NOT_SAMPLED/g)?.length ?? 0).toBe(contributions);
  expect(stderr).toContain(`${ROUNDS} contributions = ${ROUNDS - contributions} merged`);
});
