// Proves that revision 3 of the Paddle client library finds broker and job in a real etcd, where real
// hosts publish them: one trainer is selected, others wait and take over; silent and dead addresses
// beside a good one, an etcd that restarts, and hosts that come late are got over; and without etcd or
// hosts, or with something else at the address, clients are refused in bounded time with the reason.
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createSilentServer } from "node:net";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { PaddlePrograms, runWith } from "../../c/paddle/programs.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";

let programs: PaddlePrograms;
let discover: string;
let wait: string;

beforeAll(async () => {
  programs = await PaddlePrograms.build();
  discover = await programs.program("v3-discover");
  wait = await programs.program("v3-waiting");
});

afterAll(async () => {
  await programs?.remove();
});

/** An etcd that ends with the test. */
async function startEtcd({ onTestFinished }: TestContext): Promise<TestEtcd> {
  const etcd = await TestEtcd.start();
  onTestFinished(() => etcd.remove());
  return etcd;
}

/** A job that ends with the test, and an etcd for its hosts. */
async function startJob(context: TestContext): Promise<{ etcd: TestEtcd; job: TestJob }> {
  const etcd = await startEtcd(context);
  const job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
  context.onTestFinished(() => job.remove());
  return { etcd, job };
}

/** Adds a host that publishes its job in the etcd. */
async function publishHost(job: TestJob, etcd: TestEtcd, prefix = ""): Promise<TestHost> {
  return await job.host({ etcd: { endpoints: [etcd.url], prefix } });
}

/** The same with a host that publishes it. */
async function startServedJob(
  context: TestContext,
  prefix = "",
): Promise<{ etcd: TestEtcd; host: TestHost; job: TestJob }> {
  const { etcd, job } = await startJob(context);
  const host = await publishHost(job, etcd, prefix);
  return { etcd, host, job };
}

/** What a client says that looks for the job at an address; PSERVER_JOB must not matter. */
async function discovered(
  address: string,
  variables: Record<string, string> = {},
): Promise<string> {
  const { output } = await runWith(discover, [address], { PSERVER_JOB: "other", ...variables });
  return output.trim();
}

/** The port of a server that is closed after the test. */
async function listen(
  { onTestFinished }: TestContext,
  server: Server | ReturnType<typeof createSilentServer>,
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("one is selected, others wait for it", async (context) => {
  const { etcd } = await startServedJob(context);
  expect(await runWith(wait, ["restart", "etcd", etcd.url], {})).toMatchObject({ output: "" });
  await etcd.until("/init_ps/done", (entries) => entries[0]?.value === "1");
});

test("a trainer that waits is told when it is selected", async (context) => {
  const { etcd } = await startServedJob(context);
  expect(await runWith(wait, ["take-over", "etcd", etcd.url], {})).toMatchObject({ output: "" });
});

test("silent and dead addresses beside a good one", async (context) => {
  const { etcd } = await startServedJob(context);
  const silent = await listen(context, createSilentServer());
  const addresses = ["http://127.0.0.1:1", `127.0.0.1:${silent}`, `${etcd.url}/`];
  expect(await discovered(addresses.join(", "))).toBe("selected 1");
});

test("a host that comes late", async (context) => {
  const { etcd } = await startServedJob(context);
  const published = await etcd.list("/ps/");
  // What a host publishes comes late here: a host itself may take as long to start as a client looks.
  const late = await startEtcd(context);
  const waiting = discovered(late.url);
  for (const { key, value } of published) await late.put(key, value);
  expect(await waiting).toBe("selected 1");
});

test("an etcd that restarts", async (context) => {
  const { etcd } = await startServedJob(context);
  await etcd.kill();
  const waiting = discovered(etcd.url);
  await etcd.start();
  expect(await waiting).toBe("selected 1");
});

// A client looks for ten seconds before it is refused: these do so at the same time.
describe.concurrent("refused, after looking for long enough", () => {
  test("below another prefix than the host's", async (context) => {
    const { etcd } = await startServedJob(context, "/team/a");
    // Addresses without a scheme are as good.
    const address = new URL(etcd.url).host;
    const refused = discovered(address);
    expect(await discovered(address, { PSERVER_ETCD_PREFIX: "/team/a" })).toBe("selected 1");
    expect(await refused).toContain(": NO_HOST: ");
  });

  test("when something else is at the address", async (context) => {
    const answers = ["<html></html>", "{}", '{"header":{}', ""];
    let requests = 0;
    const server = createServer((_request, response) => {
      response.end(answers[requests++ % answers.length]);
    });
    const refused = await discovered(`http://127.0.0.1:${await listen(context, server)}`);
    expect(refused).toMatch(/^paddle_new_etcd_pserver_client: NO_ETCD: /);
    expect(requests).toBeGreaterThan(answers.length);
  });

  test("without hosts in etcd", async (context) => {
    const etcd = await startEtcd(context);
    expect(await discovered(etcd.url)).toMatch(/: NO_HOST: .*start one with --etcd/);
  });

  test("without etcd", async (context) => {
    const etcd = await startEtcd(context);
    await etcd.kill();
    expect(await discovered(etcd.url)).toMatch(/: NO_ETCD: /);
  });

  test("after the host has died, until there is another", async (context) => {
    const { etcd, host, job } = await startServedJob(context);
    expect(await discovered(etcd.url)).toBe("selected 1");
    await host.kill();
    await etcd.until("/ps/", (entries) => entries.length === 0);
    expect(await discovered(etcd.url)).toContain(": NO_HOST: ");
    await publishHost(job, etcd);
    expect(await discovered(etcd.url)).toBe("selected 1");
  });
});

test("an address with a password is refused, and not repeated", async () => {
  const refused = await discovered("http://user:secret@127.0.0.1:1");
  expect(refused).toMatch(/: BAD_VALUE: (?!.*secret)/);
});
