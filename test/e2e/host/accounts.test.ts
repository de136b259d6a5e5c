// Proves with the sample's accounts that a host which answers its own account only leaves a trainer of another
// one without an answer, and says once what is to be done.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const SAMPLE = join(import.meta.dirname, "../../../examples/nats/accounts.conf");

test("a trainer of another account is not answered, and the host says why", async () => {
  for (const name of ["HOST", "ANSWERS", "TRAINER_1", "TRAINER_2", "OBSERVER"]) {
    process.env[`PSERVER_${name}_PASSWORD`] = "word";
  }
  const job = await TestJob.start({}, { extraConfig: await readFile(SAMPLE, "utf8") });
  try {
    const as = (user: string): HostOptions["connection"] => {
      return { servers: [job.broker.url], timeoutMs: HANG_MS, user, password: "word" };
    };
    const options = { job: "mnist", shards: 1, connection: as("host") };
    const host = await job.host({ ...options, answerConnection: as("answers") });
    const trainer = { job: "mnist", user: "trainer-1", password: "word" };
    const error = await atDeadline("NO_HOST", (timeoutMs) =>
      job.trainer("trainer-1", { ...trainer, timeoutMs }),
    );
    expect(error).toMatchObject({ code: "NO_HOST" });
    const told = host.lines.filter(({ error: about }) => about?.code === "UNSUPPORTED");
    expect(told).toMatchObject([
      { type: "error", error: { message: expect.stringContaining("--across-accounts") } },
    ]);
    expect(told[0]?.error?.message).toContain('"trainer-1"');
  } finally {
    await job.remove();
  }
});
