// Proves what becomes of a job whose counter of sessions is lost with a part of its bucket: hosts say so when
// they start, a trainer that joins again is told so and not that its session is too old, present trainers
// continue; and once an operator has had it written again above all numbers given before, as docs/reference/errors.md
// says, all is as before.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { TEST_MS } from "../../support/limits.ts";

test(
  "a counter of sessions that is lost is found and told, and can be put back",
  async () => {
    const job = await TestJob.start({ shards: 1 });
    onTestFinished(() => job.remove());
    const first = await job.host();
    const early = await job.trainer("early");
    await early.beginInit();
    await early.initParam("w", Float32Array.of(1), { learningRate: 1 });
    await early.finishInit();
    const late = await job.trainer("late");
    await late.close();

    const raw = await connect({ servers: job.broker.url });
    onTestFinished(() => raw.close());
    const manager = await jetstreamManager(raw);
    await manager.streams.purge("KV_PS_j", { filter: "$KV.PS_j.session" });

    await expect(job.trainer("late")).rejects.toMatchObject({
      code: "JOB_DAMAGED",
      retryable: false,
      details: { expected: 2, received: 1 },
    });
    await early.pushFull("w", Float32Array.of(1), 1, 1);
    const second = await job.host();
    const told = await second.line(({ type }) => type === "error");
    expect(told.error).toMatchObject({
      code: "JOB_DAMAGED",
      message: expect.stringMatching(/stands at 1, but the record trainer\.late has session 2/),
    });

    const recovered = await run(["recover", "--job", job.job, "--entries", "--yes"], {
      environment: { PSERVER_URL: job.broker.url },
    });
    expect([recovered.code, recovered.stderr]).toEqual([0, expect.stringMatching(/session/)]);
    const again = await job.trainer("late");
    await again.pushFull("w", Float32Array.of(1), 1, 1);
    expect((await again.pullFull("w")).data).toEqual(Float32Array.of(3));
    // It may have looked at the counter while that was damaged, too.
    const errors = first.lines.flatMap(({ type, error }) => (type === "error" ? [error] : []));
    expect(errors.filter((error) => error?.code !== "JOB_DAMAGED")).toEqual([]);
  },
  TEST_MS,
);
