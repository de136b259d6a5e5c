// Proves that revision 3 of the Paddle client library finds broker and job in a real etcd, where real
// hosts publish them: one trainer is selected, others wait and take over; silent and dead addresses
// beside a good one, an etcd that restarts, and hosts that come late are got over; and without etcd or
// hosts, or with something else at the address, clients are refused in bounded time with the reason.
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createSilentServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { PaddlePrograms, runWith } from "../../c/paddle/programs.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { TestJob } from "../../support/host.ts";

const BUILD_MS = 300_000;
const RUN_MS = 120_000;

let programs: PaddlePrograms;
let discover: string;
let etcd: TestEtcd;
let job: TestJob;

beforeAll(async () => {
  programs = await PaddlePrograms.build();
  discover = await programs.program("v3-discover");
}, BUILD_MS);

beforeEach(async () => {
  etcd = await TestEtcd.start();
  job = await TestJob.start();
});

afterEach(async () => {
  await job?.remove();
  await etcd?.remove();
});

afterAll(async () => {
  await programs?.remove();
});

async function startHost(prefix = ""): Promise<void> {
  await job.host({ etcd: { endpoints: [etcd.url], prefix } });
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
async function listen(server: Server | ReturnType<typeof createSilentServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("one is selected, others wait for it", { timeout: RUN_MS }, async () => {
  await startHost();
  const path = await programs.program("v3-waiting");
  expect(await runWith(path, ["restart", "etcd", etcd.url], {})).toMatchObject({ output: "" });
  await etcd.until("/init_ps/done", (entries) => entries[0]?.value === "1");
});

test("one that waits is told when it is its turn", { timeout: RUN_MS }, async () => {
  await startHost();
  const path = await programs.program("v3-waiting");
  expect(await runWith(path, ["take-over", "etcd", etcd.url], {})).toMatchObject({ output: "" });
});

test("a prefix, and addresses without a scheme", { timeout: RUN_MS }, async () => {
  await startHost("/team/a");
  const address = new URL(etcd.url).host;
  expect(await discovered(address, { PSERVER_ETCD_PREFIX: "/team/a" })).toBe("selected 1");
  expect(await discovered(address)).toContain(": NO_HOST: ");
});

test("silent and dead addresses beside a good one", { timeout: RUN_MS }, async () => {
  await startHost();
  const silent = await listen(createSilentServer());
  const addresses = ["http://127.0.0.1:1", `127.0.0.1:${silent}`, `${etcd.url}/`];
  expect(await discovered(addresses.join(", "))).toBe("selected 1");
});

test("something else at the address", { timeout: RUN_MS }, async () => {
  const answers = ["<html></html>", "{}", '{"header":{}', ""];
  let requests = 0;
  const server = createServer((_request, response) => {
    response.end(answers[requests++ % answers.length]);
  });
  const refused = await discovered(`http://127.0.0.1:${await listen(server)}`);
  expect(refused).toMatch(/^paddle_new_etcd_pserver_client: NO_ETCD: /);
  expect(requests).toBeGreaterThan(answers.length);
});

test("no etcd, and no hosts in it", { timeout: RUN_MS }, async () => {
  expect(await discovered(etcd.url)).toMatch(/: NO_HOST: .*start one with --etcd/);
  await etcd.kill();
  expect(await discovered(etcd.url)).toMatch(/: NO_ETCD: /);
  expect(await discovered("http://user:secret@127.0.0.1:1")).toMatch(/: BAD_VALUE: (?!.*secret)/);
});

test("a host that comes late, and one that died", { timeout: RUN_MS }, async () => {
  const waiting = discovered(etcd.url);
  await startHost();
  expect(await waiting).toBe("selected 1");
  await job.hosts[0]?.kill();
  await etcd.until("/ps/", (entries) => entries.length === 0);
  expect(await discovered(etcd.url)).toContain(": NO_HOST: ");
  await startHost();
  expect(await discovered(etcd.url)).toBe("selected 1");
});

test("an etcd that restarts", { timeout: RUN_MS }, async () => {
  await startHost();
  await etcd.kill();
  const waiting = discovered(etcd.url);
  await etcd.start();
  expect(await waiting).toBe("selected 1");
});
