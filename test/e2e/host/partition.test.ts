// Proves, with the users, permissions and TLS of `pserver auth init`, that a network that separates one broker of three from the others does no harm: on each broker a
// trainer and a host, which know no other one. While a broker is alone, the trainers of the others continue
// with hosts of the others, and reads never go back on either side. Afterwards all continue, each update was
// applied once, or at most once where its trainer was told that this is unknown, and all hosts are alive.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { hashName, JobSubjects } from "../../../src/protocol/index.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { TestAuth } from "../../support/auth.ts";
import { TestCluster } from "../../support/cluster.ts";
import type { TestHost } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { type AddingTrainer, addingInC, addingInTypeScript } from "./adding-trainer.ts";
import { BROKER_TIMEOUT_MS, startReplicatedHost } from "./replicated-host.ts";

const JOB = "j";
const LEASE_MS = 2_000;
const SHARDS = 3;
const subjects = new JobSubjects(JOB);

/** Updates of each trainer while a broker is alone, if it is not that broker's, and afterwards. */
const UPDATES = 3;

/** What a trainer has done. */
interface Progress {
  readonly trainer: AddingTrainer;
  applied: number;
  unknown: number;
  read: number;
}

let auth: TestAuth;
let cluster: TestCluster;
let library: BuiltLibrary;
/** By the number of their broker. */
const hosts: TestHost[] = [];
const trainers: Progress[] = [];

beforeAll(async () => {
  auth = await TestAuth.make(JOB, ["initializer", "a", "b", "c", "reader"]);
  [cluster, library] = await Promise.all([
    TestCluster.start(3, auth),
    BuiltLibrary.build(SANITIZED),
  ]);
  const options = { shards: SHARDS, leaseMs: LEASE_MS };
  hosts.push(
    ...cluster.urls.map((url) =>
      startReplicatedHost([url], { ...options, ...auth.host([url], BROKER_TIMEOUT_MS) }),
    ),
  );
  await Promise.all(hosts.map((host) => host.line(({ type }) => type === "started")));
  const initializer = await join("initializer");
  await initializer.beginInit();
  await initializer.initParam("steps", Float32Array.of(0));
  await initializer.finishInit();
  await initializer.close();
  const [first = "", second = "", third = ""] = cluster.urls;
  const adding = await Promise.all([
    addingInTypeScript([first], JOB, "a", auth.trainer("a")),
    addingInTypeScript([second], JOB, "b", auth.trainer("b")),
    addingInC(library, [third], JOB, "c", auth.variables("c")),
  ]);
  trainers.push(...adding.map((trainer) => ({ trainer, applied: 0, unknown: 0, read: 0 })));
});

afterAll(async () => {
  await Promise.all(trainers.map(({ trainer }) => trainer.end()));
  await Promise.all(hosts.map((host) => host.kill()));
  await cluster?.remove();
  await library?.remove();
  await auth?.remove();
});

/** A trainer that knows all brokers. */
async function join(trainer: string): Promise<Client> {
  const options = { url: cluster.urls, job: JOB, timeoutMs: HANG_MS };
  return await connect({ ...options, trainer, ...auth.trainer(trainer) });
}

async function add(each: Progress): Promise<void> {
  const { read, isApplied } = await each.trainer.add();
  if (isApplied) each.applied += 1;
  else each.unknown += 1;
  // What it has read before, and its own update, if that was applied.
  expect(read).toBeGreaterThanOrEqual(each.read + (isApplied ? 1 : 0));
  each.read = read;
}

/** Has a trainer add until it is told to end, and then some times more. */
async function addUntil(each: Progress, hasEnded: () => boolean): Promise<void> {
  while (!hasEnded()) await add(each);
  for (let i = 0; i < UPDATES; i++) await add(each);
}

/** Has a trainer add so many times, with all hosts and brokers that it reaches. */
async function addSome(each: Progress): Promise<void> {
  for (let i = 0; i < UPDATES; i++) await add(each);
}

test.each([
  ["the leases", `KV_${subjects.leaseBucket()}`],
  ["the parameter's journal", subjects.journalStream(hashName("steps") % SHARDS, 1)],
])("the broker that leads %s is alone for a time", async (_what, stream) => {
  await cluster.whole();
  const alone = await cluster.leader(stream);
  const others = trainers.filter((_, number) => number !== alone);
  const separated = trainers[alone] as Progress;
  let isWhole = false;
  cluster.isolate(alone);
  const separatedWork = addUntil(separated, () => isWhole);
  // Hosts of the other brokers serve them, under leases that the one that is alone does not know of.
  await Promise.all(others.map(addSome));
  cluster.join(alone);
  isWhole = true;
  await Promise.all([separatedWork, ...others.map(addSome)]);

  const applied = trainers.reduce((sum, each) => sum + each.applied, 0);
  const unknown = trainers.reduce((sum, each) => sum + each.unknown, 0);
  const reader = await join("reader");
  const { data } = await reader.pullFull("steps", { timeoutMs: HANG_MS });
  const value = data[0];
  await reader.close();
  expect(value).toBeGreaterThanOrEqual(applied);
  expect(value).toBeLessThanOrEqual(applied + unknown);
  // Only what was under way when the broker was alone can have become unknown.
  expect(others.map((each) => each.unknown)).toEqual(others.map(() => 0));
  const ends = hosts.flatMap(({ lines }) =>
    lines.filter(({ type }) => type === "stopped" || type === "refused" || type === "shard-failed"),
  );
  expect(ends).toEqual([]);
  expect(hosts.filter(({ hasEnded }) => hasEnded)).toEqual([]);
});
