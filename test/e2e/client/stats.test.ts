// Proves on a real broker that a client counts what it does: calls and their failures, records, reads, bytes and lost
// connections; and that `pserver run` prints that of its trainers.
import { expect, onTestFinished, test, vi } from "vitest";
import { startServedJob } from "../../c/test-job.ts";
import { start } from "../../cli/spawn-command.ts";
import { HANG_MS } from "../../support/limits.ts";
import { makeRunDirectory } from "../../support/run-command.ts";

test("a client counts what it does, also what fails and what is lost", async () => {
  const job = await startServedJob();
  const client = await job.trainer("a");
  const none = client.stats();
  expect(none).toMatchObject({
    calls: 0,
    failed: {},
    records: 0,
    resent: 0,
    clipped: 0,
    setAside: 0,
    reads: 0,
    reconnects: 0,
  });
  await client.beginInit();
  await client.initParam("w", new Float32Array(1_000));
  await client.finishInit();
  const made = client.stats();
  expect(made).toMatchObject({ calls: 3, records: 1, reads: 0 });
  for (let i = 0; i < 3; i++) await client.pushFull("w", new Float32Array(1_000), 1, 1);
  await client.getParams(["w"]);
  await expect(client.getParams(["nothing"])).rejects.toMatchObject({ code: "UNKNOWN_PARAMETER" });
  const done = client.stats();
  expect(done).toMatchObject({
    ...{ calls: 8, failed: { UNKNOWN_PARAMETER: 1 }, records: 4, resent: 0, reads: 1 },
  });
  expect(done.sentBytes - made.sentBytes).toBeGreaterThan(12_000);
  expect(done.receivedBytes - made.receivedBytes).toBeGreaterThan(4_000);
  await job.broker.kill();
  await job.broker.start();
  await vi.waitFor(() => expect(client.stats().reconnects).toBeGreaterThanOrEqual(2), {
    timeout: HANG_MS,
    interval: 50,
  });
  await client.close();
  expect(client.stats().calls).toBe(8);
});

test("a run prints what its trainers have done, and keeps nothing of it", async () => {
  const directory = await makeRunDirectory();
  onTestFinished(() => directory.remove());
  const script = await directory.script(
    "counts.mjs",
    `const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
     if (await ps.beginInit()) {
       await ps.initParam("w", new Float32Array(4));
       await ps.finishInit();
     }
     await ps.pushFull("w", new Float32Array(4), 1, 1);
     await ps.getParams(["nothing"]).catch(() => {});
     await ps.close();`,
  );
  const args = ["-n", "2", "--shards", "1", "--json", "--", process.execPath, script];
  const run = start(["run", ...args], { cwd: directory.path });
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  const values = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(values.find(({ stats }) => stats !== undefined)).toEqual({
    stats: ["trainer-0", "trainer-1"].map((trainer) => ({
      trainer,
      ...{ calls: expect.any(Number), failed: { UNKNOWN_PARAMETER: 1 }, resent: 0, reconnects: 0 },
      ...{ records: expect.any(Number), clipped: 0, setAside: 0, reads: expect.any(Number) },
      ...{ sentBytes: expect.any(Number), receivedBytes: expect.any(Number) },
    })),
  });
});
