// Proves that nobody waits for the leases of a host process of `pserver up` that is killed: its shards are served again in
// less time than its leases still last.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { start } from "../cli/spawn-command.ts";
import { startTestBroker } from "../support/broker.ts";
import { TestHost } from "../support/host.ts";
import { HANG_MS } from "../support/limits.ts";
import { signalProcess } from "../support/signals.ts";

/** So many that each of two hosts surely has one. */
const SHARDS = 16;
const JOB = "j";

/** Hosts look for others ten times in it. */
const LEASE_MS = 240_000;
/** Renewed three times in their time, leases last for longer than this. */
const CALL = { timeoutMs: 150_000 };

test("the shards of a host process that is killed are served at once", async () => {
  const store = await mkdtemp(join(tmpdir(), "pserver-dead-host-"));
  onTestFinished(() => rm(store, { recursive: true, force: true }));
  // The command has no flag for the lease time: an earlier host of the job has set it.
  const broker = await startTestBroker({ storeDir: join(store, "store") });
  const connection = { servers: [broker.url], timeoutMs: HANG_MS };
  const earlier = new TestHost({ connection, job: JOB, shards: SHARDS, leaseMs: LEASE_MS });
  await earlier.line(({ type }) => type === "started");
  await earlier.stop();
  await broker.stop();

  const flags = ["--store", store, "--port", "0", "--job", JOB, "--hosts", "2", "--no-token"];
  const up = start(["up", ...flags, "--json"]);
  const { url, hosts } = JSON.parse(await up.firstLine);
  const client = await connect({ url, job: JOB, trainer: "t", timeoutMs: HANG_MS });
  const names = Array.from({ length: 4 * SHARDS }, (_, index) => `w${index}`);
  for (const name of names) await client.createIfNotAlreadyCreated(name, Float32Array.of(1));
  const [, killed = ""] = hosts as string[];
  // The id of a host ends in its process and a random part.
  const [, pid] = /-(\d+)-[0-9a-f]{8}$/.exec(killed) ?? [];
  signalProcess(Number(pid), "SIGKILL");
  for (const name of names) {
    await client.pushFull(name, Float32Array.of(1), 1, 1, CALL);
    expect((await client.pullFull(name, CALL)).data).toEqual(Float32Array.of(2));
  }
  await client.close();
  up.child.kill("SIGINT");
  expect(await up.finished).toMatchObject({ code: 0 });
});
