// Proves that a job's history can be verified after it went on under another generation, by a rewind or after an
// accepted loss, in the broker, an archive and a recorded file: the journal that was left is folded, and its state
// at the cut is what the next generation began with; damage is found, unless it was given up. And that a fork is
// verified from the state with which it began, which nothing takes the place of.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { LocalReplayer } from "../../../src/history/replay/replayer.ts";
import type { HistoryPlace } from "../../../src/history/source.ts";
import type { VerifiedPlace } from "../../../src/history/verify.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { snapshotAll } from "../host/control.ts";
import { failureOf, flipBitOf, streamDirectory } from "../host/damage.ts";
import { Archive } from "../host/journal-fold.ts";
import { branch, cutNow } from "./forks.ts";

let job: TestJob;
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-verify-"));
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1 });
  await job.host();
});

afterEach(async () => {
  await job.remove();
  await rm(directory, { recursive: true });
});

function pserver(...args: string[]): Promise<Finished> {
  return run([...args, "--job", job.job], { environment: { PSERVER_URL: job.broker.url } });
}

function broker(): HistoryPlace {
  const connection = { servers: [job.broker.url], timeoutMs: HANG_MS };
  return { kind: "broker", connection, job: job.job };
}

/** What is found out about shard 0: the positions, as generation, record and kind, and how many records. */
async function verified(place: HistoryPlace): Promise<{ records: number; places: string[] }> {
  const source = await openHistory(place);
  try {
    const replayer = new LocalReplayer(source, new AbortController().signal);
    const { verification } = await replayer.verify(0, undefined);
    const show = ({ generation, seq, kind }: VerifiedPlace) => `${generation}:${seq} ${kind}`;
    // Several manifests may name one snapshot; an archive has one of them.
    const places = [...new Set(verification.places.map(show))];
    return { records: verification.records, places };
  } finally {
    await source.close();
  }
}

/** A trainer whose parameter has the state of an optimizer; it is not told of losses. */
async function trainer(): Promise<Client> {
  const client = await job.trainer("a", { onFallback: () => undefined });
  await client.createIfNotAlreadyCreated("w", Float32Array.of(1, 2), {
    ...{ optimizer: "adam", learningRate: 0.1 },
  });
  return client;
}

async function train(client: Client, rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) await client.sendGrads({ w: Float32Array.of(i + 1, -1) });
}

test("after a rewind both generations are folded, and one leads to the other", async () => {
  const client = await trainer();
  await train(client, 4);
  await snapshotAll(job);
  await train(client, 3);
  const at = await cutNow(job);
  await train(client, 5);
  const left = (await cutNow(job))[0]?.seq ?? 0;
  await branch(job, { at });
  await train(client, 2);
  await snapshotAll(job);
  const present = (await cutNow(job))[0]?.seq ?? 0;
  const { records, places } = await verified(broker());
  expect(records).toBe(left + present);
  expect(places[0]).toBe("1:0 first");
  expect(places.slice(1).every((place) => place.endsWith(" equal"))).toBe(true);
  expect(places).toContain("2:0 equal");
  expect(places.at(-1)).toBe(`2:${present} equal`);

  // The commands, with the archive of both, and with a file that begins with the left journal.
  const archive = join(directory, "archive");
  const file = join(directory, "span.pserver");
  expect((await pserver("archive", archive, "--once")).code).toBe(0);
  expect((await pserver("record", file, "--from", `0:${(at[0]?.seq ?? 0) - 1}@1`)).code).toBe(0);
  expect(await verified({ kind: "archive", archive })).toEqual({ records, places });
  const live = await pserver("verify");
  expect([live.code, live.stderr]).toEqual([0, `1 shard, ${records} records folded: all agree\n`]);
  expect(live.stdout).toMatch(/0 {2}0:0 +\d+ {2}\d equal +equal\n/);
  // It has the left journal from the last snapshot before the cut on.
  const ofFile = await verified({ kind: "archive", archive: file });
  expect(ofFile.places.at(-1)).toBe("2:0 equal");
  const { code, stdout } = await pserver("verify", "--from-file", file, "--json");
  const [shard] = JSON.parse(stdout).shards;
  expect([code, shard.hosts, shard.records]).toEqual([0, null, ofFile.records]);

  // A record of the left journal that is lost.
  await using journals = await Archive.open(job.broker.url, job.job);
  const { streams } = await jetstreamManager(journals.connection);
  await streams.deleteMessage("PS_j_0", left - 1);
  const damaged = await pserver("verify");
  expect(damaged.code).toBe(1);
  expect(damaged.stderr).toContain(`the journal after 0:${left - 2}: `);
});

test("a fork is sound, trained or not, and without its first snapshot nothing of it is rebuilt", async () => {
  const client = await trainer();
  await train(client, 4);
  await branch(job, { at: await cutNow(job), as: "other" });
  await branch(job, { at: await cutNow(job), as: "still" });
  const verify = (of: string, ...args: string[]) =>
    run(["verify", "--job", of, ...args], { environment: { PSERVER_URL: job.broker.url } });
  // Nobody has served this one.
  const still = await verify("still");
  expect([still.code, still.stdout]).toEqual([0, expect.stringMatching(/0:0@2 +0 {2}1 equal/)]);
  await job.host({ job: "other", snapshotBytes: 1 });
  const forked = await job.trainer("b", { job: "other" });
  await train(forked, 7);
  const { code, stderr } = await verify("other");
  const agree = expect.stringMatching(/^1 shard, \d+ records folded: all agree\n$/);
  expect([code, stderr]).toEqual([0, agree]);
  const archive = join(directory, "fork");
  const env = { environment: { PSERVER_URL: job.broker.url } };
  expect((await run(["archive", archive, "--once", "--job", "other"], env)).code).toBe(0);
  const alone = ["--archive", archive, "--no-broker"];
  expect((await verify("other", ...alone)).code).toBe(0);
  expect((await verify("other", "--archive", archive)).code).toBe(0);
  for (const name of await readdir(join(archive, "shard-0", "snapshots"))) {
    await rm(join(archive, "shard-0", "snapshots", name));
  }
  const rebuilt = await run(["replay", "--to", "0:3@2", ...alone, "--json"], env);
  expect([rebuilt.code, JSON.parse(rebuilt.stderr).error.code]).toEqual([1, "HISTORY_LOST"]);
});

test("a recorded file without a later snapshot is folded, and it is said that nothing was compared", async () => {
  const client = await trainer();
  await train(client, 4);
  await snapshotAll(job);
  await train(client, 2);
  const file = join(directory, "span.pserver");
  const from = `0:${(await cutNow(job))[0]?.seq ?? 0}`;
  await train(client, 2);
  expect((await pserver("record", file, "--from", from)).code).toBe(0);
  const { code, stderr } = await pserver("verify", "--from-file", file);
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/records folded: no later snapshot, and no host to compare with\n$/),
  ]);
});

test("after an accepted loss what was given up may be damaged", async () => {
  const client = await trainer();
  await train(client, 8);
  await using archive = await Archive.open(job.broker.url, job.job);
  const { streams } = await jetstreamManager(archive.connection);
  const lost = ((await cutNow(job))[0]?.seq ?? 0) - 3;
  const payload = Uint8Array.from((await streams.getMessage("PS_j_0", { seq: lost }))?.data ?? []);
  await archive.close();
  await job.hosts[0]?.kill();
  await job.broker.stop();
  await flipBitOf(streamDirectory(job, "PS_j_0"), payload);
  await job.broker.start();
  const host = await job.host();
  expect(await failureOf(host, 0)).toBe("JOURNAL_DAMAGED");
  expect((await verified(broker())).places.at(-1)).toBe(`1:${lost - 1} unreadable`);
  expect((await pserver("recover", "--from", "prefix", "--yes")).code).toBe(0);
  await host.until(() => host.serving.includes(0));
  await train(client, 2);
  const { places } = await verified(broker());
  expect(places.slice(-2)).toEqual([`1:${lost - 1} given-up`, "2:0 equal"]);
  const { code, stderr } = await pserver("verify");
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/was given up with its generation: .*\n.*: all agree\n/s),
  ]);
});
