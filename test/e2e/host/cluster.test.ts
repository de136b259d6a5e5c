// Proves that no passing fault ends a trainer or host in a cluster of three brokers, with every stream kept three times
// and the users, permissions and TLS of `pserver auth init`: while trainers in TypeScript and in C push all the time, the
// leaders of the leases, of the job's records and of a journal are killed, two brokers are away for longer than a lease,
// one hangs, all are restarted one after the other, and one loses its disk.
// After each, every trainer's calls succeed within their deadline, under the session that it began with,
// every update was applied exactly once, and all hosts are alive. A broker that is missing is named by the
// commands that look at the job.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { run } from "../../cli/spawn-command.ts";
import { TestAuth } from "../../support/auth.ts";
import { TestCluster } from "../../support/cluster.ts";
import type { TestHost } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { type AddingTrainer, addingInC, addingInTypeScript } from "./adding-trainer.ts";
import { BROKER_TIMEOUT_MS, startReplicatedHost } from "./replicated-host.ts";

const JOB = "j";
const LEASE_MS = 2_000;
const SHARDS = 2;
const WAIT = { timeout: HANG_MS, interval: 200 };

/** Updates that each trainer makes after a fault before the next one. */
const UPDATES_AFTER = 3;

/** Trainers that do nothing but renew their leases: the more of them, the surer one meets the fault. */
const IDLE = 8;

const subjects = new JobSubjects(JOB);

let auth: TestAuth;
let cluster: TestCluster;
let library: BuiltLibrary;
const hosts: TestHost[] = [];
const trainers: Trainer[] = [];
const idle: { readonly client: Client; readonly session: number }[] = [];

/** A trainer, and what it has done. */
interface Trainer extends AddingTrainer {
  added: number;
  /** The first session that it had. */
  first: number;
}

function startHost(): TestHost {
  const users = auth.host(cluster.urls, BROKER_TIMEOUT_MS);
  const host = startReplicatedHost(cluster.urls, { shards: SHARDS, leaseMs: LEASE_MS, ...users });
  hosts.push(host);
  return host;
}

async function trainer(name: string): Promise<Client> {
  const user = auth.trainer(name);
  return await connect({ url: cluster.urls, job: JOB, trainer: name, timeoutMs: HANG_MS, ...user });
}

beforeAll(async () => {
  const idleNames = Array.from({ length: IDLE }, (_, i) => `idle-${i}`);
  auth = await TestAuth.make(JOB, ["initializer", "a", "b", "c", "reader", ...idleNames]);
  [cluster, library] = await Promise.all([
    TestCluster.start(3, auth),
    BuiltLibrary.build(SANITIZED),
  ]);
  // At the same time, while the cluster has just found its leader.
  startHost();
  startHost();
  await Promise.all(hosts.map((host) => host.line(({ type }) => type === "started")));
  const initializer = await trainer("initializer");
  await initializer.beginInit();
  await initializer.initParam("steps", Float32Array.of(0));
  await initializer.finishInit();
  await initializer.close();
  const { urls } = cluster;
  const adding = await Promise.all([
    addingInTypeScript(urls, JOB, "a", auth.trainer("a")),
    addingInTypeScript(urls, JOB, "b", auth.trainer("b")),
    addingInC(library, urls, JOB, "c", auth.variables("c")),
  ]);
  trainers.push(...adding.map((each) => ({ ...each, added: 0, first: 0 })));
  for (const name of idleNames) {
    const client = await trainer(name);
    idle.push({ client, session: client.session });
  }
  for (const each of trainers) {
    await each.add();
    each.added += 1;
    each.first = each.session();
  }
});

afterAll(async () => {
  await Promise.all(trainers.map(({ end }) => end()));
  await Promise.all(idle.map(({ client }) => client.close({ timeoutMs: 1 })));
  await Promise.all(hosts.map((host) => host.kill()));
  await cluster?.remove();
  await library?.remove();
  await auth?.remove();
});

// What a test that fails has left would keep the others waiting.
afterEach(() => cluster.restartAll());

/** Has all trainers add one after the other until each has done so some times after `fault` was over. */
async function whileAdding(fault: () => Promise<void>): Promise<void> {
  let over = false;
  const work = trainers.map(async (each) => {
    let left = UPDATES_AFTER;
    while (left > 0) {
      const wasOver = over;
      const { read, isApplied } = await each.add();
      expect(isApplied).toBe(true);
      each.added += 1;
      expect(read).toBeGreaterThanOrEqual(each.added);
      if (wasOver) left -= 1;
    }
  });
  const done = Promise.all(work);
  const ended = Promise.race(hosts.map(endOf));
  try {
    await Promise.race([fault(), done, ended]);
  } finally {
    over = true;
  }
  await Promise.race([done, ended]);
}

/** Waits until a host ends, and @throws why. */
async function endOf(host: TestHost): Promise<never> {
  await host.exited;
  throw new Error(`a host has ended: ${JSON.stringify(host.lines.at(-1))}`);
}

/** Every update was applied once; trainers and hosts are who they were. */
async function expectUnharmed(): Promise<void> {
  const reader = await trainer("reader");
  const { data } = await reader.pullFull("steps", { timeoutMs: HANG_MS });
  await reader.close();
  expect(data[0]).toBe(trainers.reduce((sum, { added }) => sum + added, 0));
  expect(trainers.map(({ session }) => session())).toEqual(trainers.map(({ first }) => first));
  await Promise.all(idle.map(({ client }) => client.status({ timeoutMs: HANG_MS })));
  expect(idle.map(({ client }) => client.session)).toEqual(idle.map(({ session }) => session));
  const ends = hosts.flatMap(({ lines }) =>
    lines.filter(({ type }) => type === "stopped" || type === "refused" || type === "shard-failed"),
  );
  expect(ends).toEqual([]);
  expect(hosts.filter(({ hasEnded }) => hasEnded)).toEqual([]);
}

/** Waits until each host has lost its own lease since its line number `from`. */
async function leasesLost(from: readonly number[]): Promise<void> {
  const isLost = ({ type, error }: TestHost["lines"][number]): boolean =>
    type === "error" && error?.message.includes("has not been renewed") === true;
  await Promise.all(hosts.map((host, i) => host.line(isLost, from[i])));
}

describe("a cluster", () => {
  test.each([
    ["the leases", `KV_${subjects.leaseBucket()}`],
    ["the job's records", `KV_${subjects.bucket()}`],
    ["a journal", subjects.journalStream(0, 1)],
  ])("loses the leader of %s", async (_what, stream) => {
    await cluster.whole();
    const leader = await cluster.leader(stream);
    await whileAdding(async () => {
      await cluster.kill(leader);
      expect(await cluster.leader(stream)).not.toBe(leader);
    });
    await cluster.restart(leader);
    await expectUnharmed();
  });

  test("loses two of three brokers for longer than a lease", async () => {
    await cluster.whole();
    const from = hosts.map(({ lines }) => lines.length);
    await whileAdding(async () => {
      await Promise.all([cluster.kill(0), cluster.kill(1)]);
      await leasesLost(from);
      // One that starts now waits for the cluster to have a leader.
      const third = startHost();
      await Promise.all([cluster.restart(0), cluster.restart(1)]);
      await third.line(({ type }) => type === "started");
    });
    await expectUnharmed();
  });

  test("says in status, jobs and doctor that a broker is missing", async () => {
    await cluster.whole();
    await cluster.kill(2);
    const flags = ["--json", "--job", JOB, "--timeout", "60s", "--url", cluster.urls.join(",")];
    const environment = auth.variables("admin");
    const asked = async (command: string) => {
      const own = command === "jobs" ? [] : ["--trainer", "admin"];
      return JSON.parse((await run([command, ...flags, ...own], { environment })).stdout);
    };
    const missing = { wanted: 3, missing: [expect.any(String)] };
    // On a busy machine another one may not be reached for a moment, either.
    await vi.waitFor(async () => {
      expect(await asked("status")).toMatchObject({ replicas: missing });
      expect(await asked("jobs")).toMatchObject([{ job: JOB, replicas: missing }]);
      const { checks } = await asked("doctor");
      expect(checks).toContainEqual(
        expect.objectContaining({
          name: "replicas",
          status: "warn",
          message: expect.stringMatching(/2 of 3 copies; not reached: \S/),
        }),
      );
    }, WAIT);
    await cluster.restart(2);
    await cluster.whole();
    await vi.waitFor(async () => {
      expect((await asked("status")).replicas).toEqual({ wanted: 3, missing: [], lacking: [] });
    }, WAIT);
  });

  test("has a broker that hangs", async () => {
    await cluster.whole();
    const stream = `KV_${subjects.leaseBucket()}`;
    const leader = await cluster.leader(stream);
    await whileAdding(async () => {
      await cluster.freeze(leader);
      expect(await cluster.leader(stream)).not.toBe(leader);
      cluster.thaw(leader);
    });
    await expectUnharmed();
  });

  test("has all brokers restarted, one after the other", async () => {
    await whileAdding(async () => {
      for (const number of [0, 1, 2]) {
        await cluster.whole();
        await cluster.stop(number);
        await cluster.restart(number);
      }
      await cluster.whole();
    });
    await expectUnharmed();
  });

  test("has a broker that loses its disk, and takes everything from the others", async () => {
    await cluster.whole();
    const journal = subjects.journalStream(0, 1);
    const leader = await cluster.leader(journal);
    await whileAdding(async () => {
      await cluster.wipe(leader);
      await cluster.restart(leader);
      await cluster.whole();
    });
    await expectUnharmed();
    // It leads, and so answers alone for what it has.
    await cluster.lead(leader, [journal]);
    await expectUnharmed();
  });
});
