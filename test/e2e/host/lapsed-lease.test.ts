// Proves that a host whose lease of a shard had run out answers nothing before it knows what other owners have
// acknowledged meanwhile, although it holds the lease again. The network parts the host from the broker; another
// host takes the shard over, and crashes. Then the first one can be reached again, by all of its connections but
// the one that reads the journal.
import { connect as connectToBroker } from "@nats-io/transport-node";
import { afterEach, expect, test } from "vitest";
import { placeShard } from "../../../src/actors/host/placement.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { SilentLine } from "../../support/silent-line.ts";

const SHARD = 0;
const IDS = ["a", "b"] as const;
const RECONNECT_MS = 2_000;

let job: TestJob | undefined;

afterEach(async () => {
  await job?.remove();
});

test("a shard that comes back is read as its last owner left it", async () => {
  job = await TestJob.start({ shards: 1, workers: 1 });
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
  const pulls = asked.subscribe(new JobSubjects("j").allPulls(), { max: 3 });
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
