// Proves with the users of `pserver auth init` that a host which answers its own account only leaves a trainer of another
// one without an answer, and says once what is to be done.
import { expect, test } from "vitest";
import { atDeadline } from "../../support/at-deadline.ts";
import { TestAuth } from "../../support/auth.ts";
import { TestJob } from "../../support/host.ts";

test("a trainer of another account is not answered, and the host says why", async () => {
  const auth = await TestAuth.make("mnist", ["trainer-1"]);
  const job = await TestJob.start({}, { authFile: auth.directory.configFile });
  try {
    const users = { ...auth.host([job.broker.url]), acrossAccounts: false };
    const host = await job.host({ job: "mnist", shards: 1, ...users });
    const trainer = { job: "mnist", ...auth.trainer("trainer-1") };
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
    await auth.remove();
  }
});
