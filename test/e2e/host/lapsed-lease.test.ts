// Proves that a host whose lease of a shard had run out answers nothing before it knows what other owners have
// acknowledged meanwhile, although it holds the lease again. The network parts the host from the broker; another
// host takes the shard over, and crashes. Then the first one can be reached again, by all of its connections but
// the one that reads the journal. And that a shard that has failed says so again when its lease was claimed anew.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectToBroker } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { placeShard } from "../../../src/actors/host/shard-claims.ts";
import { bucketStream, JobSubjects } from "../../../src/protocol/index.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { SilentLine } from "../../support/silent-line.ts";
import { failureOf } from "./damage.ts";

const SHARD = 0;
const IDS = ["a", "b"] as const;
const RECONNECT_MS = 2_000;
const SUBJECTS = new JobSubjects("j");

let job: TestJob | undefined;

afterEach(async () => {
  await job?.remove();
});

test("a shard that comes back is read as its last owner left it", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1, workers: 1 });
  const { broker } = job;
  await using line = await SilentLine.open(Number(new URL(broker.url).port));
  // The shard falls to the host behind the line whenever that one is there.
  const id = placeShard("j", SHARD, new Set(IDS)) ?? "";
  const other = IDS.find((one) => one !== id) ?? "";
  // Bounds an attempt to connect on a line that is silent.
  const connection = { servers: [line.url], timeoutMs: RECONNECT_MS };
  const first = await job.host({ id, connection });
  const second = await job.host({ id: other });
  const trainer = await job.trainer("t");
  await trainer.beginInit();
  await trainer.initParam("steps", Float32Array.of(0));
  await trainer.finishInit();
  expect(first.serving).toEqual([SHARD]);

  line.silence();
  await second.until(() => second.serving.length === 1);
  for (let i = 0; i < 5; i++) await trainer.pushFull("steps", Float32Array.of(1), 1, 1);
  await job.crash(second);
  line.restore(/ journal$/);

  const asked = await connectToBroker({ servers: broker.url });
  const pulls = asked.subscribe(SUBJECTS.allPulls(), { max: 3 });
  const reader = await job.trainer("r");
  const read = reader.pullFull("steps", { timeoutMs: HANG_MS });
  // Asked again, so the first request is not answered; or it is, with an outdated value.
  const askedAgain = (async (): Promise<void> => {
    for await (const _ of pulls);
  })();
  await Promise.race([askedAgain, read]);
  line.restore();
  expect([...(await read).data]).toEqual([5]);
  expect(first.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  await asked.close();
});

test("a shard that has failed says so again when its lease is claimed anew", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1, workers: 1 });
  const host = await job.host();
  const trainer = await job.trainer("t");
  await trainer.beginInit();
  await trainer.initParam("steps", Float32Array.of(0));
  await trainer.finishInit();
  const connection = await connectToBroker({ servers: job.broker.url });
  const { streams } = await jetstreamManager(connection);
  await streams.delete(SUBJECTS.journalStream(SHARD, 1));
  expect(await failureOf(host, SHARD)).toBe("JOURNAL_LOST");

  await freeze(host.pid);
  const bucket = SUBJECTS.leaseBucket();
  const held = async (): Promise<number | undefined> => {
    const subjects_filter = `$KV.${bucket}.shard.>`;
    const { state } = await streams.info(bucketStream(bucket), { subjects_filter });
    return Object.keys(state.subjects ?? {}).length;
  };
  await expect.poll(held, { timeout: HANG_MS, interval: 100 }).toBe(0);
  thaw(host.pid);
  const reader = await job.trainer("r");
  await expect(reader.pullFull("steps", { timeoutMs: HANG_MS })).rejects.toMatchObject({
    code: "JOURNAL_LOST",
  });
  // It was not taken over anew: what it has found may show nowhere else.
  expect(host.lines.filter(({ type }) => type === "shard-failed")).toHaveLength(1);
  await connection.close();
});
