// Proves on a real broker that a job made under rules 2 continues under them, without batches, until it is
// upgraded; that it can be upgraded while a trainer trains, which continues with records of single blocks;
// that one which joins later sends batches; that nothing is lost or applied twice; and that an upgrade may be
// repeated.
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CURRENT_RULES } from "../../../src/actors/fold/rules.ts";
import { openBucket } from "../../../src/actors/journal/kv-bucket.ts";
import type { Client } from "../../../src/client/index.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { Archive } from "./journal-fold.ts";
import { makeOldJob, oldSettings } from "./old-job.ts";

const SHARDS = 2;
const NAMES = ["s", "t", "u", "v", "w", "x", "y", "z"];
const SUBJECTS = new JobSubjects("j");

let job: TestJob;
let connection: NatsConnection;

beforeEach(async () => {
  job = await TestJob.start({ shards: SHARDS });
  connection = await connect({ servers: job.broker.url });
});

afterEach(async () => {
  await connection.close();
  await job.remove();
});

function upgrade(...more: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: job.broker.url, NATS_TIMEOUT: `${HANG_MS}ms` };
  return run(["upgrade-rules", "j", "--timeout", `${HANG_MS}ms`, ...more], { environment });
}

function gradients(): Record<string, Float32Array> {
  return Object.fromEntries(NAMES.map((name) => [name, Float32Array.of(-1, -1)]));
}

async function initialize(client: Client): Promise<void> {
  await client.beginInit();
  for (const name of NAMES) {
    await client.initParam(name, new Float32Array(2), { learningRate: 1 });
  }
  await client.finishInit();
}

test("a job of rules 2 is upgraded while it is trained", async () => {
  await makeOldJob(connection, 2, SHARDS);
  const host = await job.host();
  const early = await job.trainer("early");
  await initialize(early);
  let rounds = 0;
  let done = false;
  const training = (async (): Promise<void> => {
    while (!done) {
      await early.sendGrads(gradients());
      rounds += 1;
    }
  })();
  expect(JSON.parse((await upgrade("--json")).stdout)).toEqual({
    ...{ job: "j", from: 2, to: CURRENT_RULES, shards: SHARDS },
  });
  const late = await job.trainer("late");
  for (let i = 0; i < 10; i++) {
    await late.sendGrads(gradients());
    rounds += 1;
  }
  done = true;
  await training;
  const again = await upgrade();
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("already") });

  // What was begun under the old rules and went on under the new ones is folded alike by the next owner.
  await host.kill();
  await job.host();
  await late.sendGrads(gradients());
  rounds += 1;
  for (const name of NAMES) {
    expect((await late.pullFull(name)).data).toEqual(Float32Array.of(rounds, rounds));
  }

  await using archive = await Archive.open(job.broker.url, job.job);
  let batches = 0;
  for (let shard = 0; shard < SHARDS; shard++) {
    const sent = (await archive.records(shard)).map(({ subject }) => subject);
    expect(sent.filter((subject) => subject === SUBJECTS.batch(shard, "early"))).toEqual([]);
    batches += sent.filter((subject) => subject === SUBJECTS.batch(shard, "late")).length;
    expect((await archive.fold(shard)).saveState()).toMatchObject({
      rules: CURRENT_RULES,
      unreadable: 0,
    });
  }
  // On a busy machine some are repeated.
  expect(batches).toBeGreaterThanOrEqual(11 * SHARDS);
});

test("a job of rules 1 is left as it is", async () => {
  await makeOldJob(connection, 1, SHARDS);
  await job.host();
  const refused = await upgrade();
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("UNSUPPORTED: job j has rules 1");
});

test("a job that nobody serves is not upgraded by half", async () => {
  await makeOldJob(connection, 2, SHARDS);
  const records = await openBucket({ connection, bucket: "PS_j", storage: "file" });
  const refused = await upgrade();
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("NO_OWNER");
  expect((await records.read("settings"))?.value).toEqual(oldSettings(2, SHARDS));
});
