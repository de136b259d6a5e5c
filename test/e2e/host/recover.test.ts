// Proves that an operator can accept a loss: a shard whose journal or snapshots were damaged is shown as it
// is, and continues from the chosen state, under a new generation, on hosts that keep running; its trainers
// are told what they lost. The damage is done to the broker's files while it is stopped, or through its API;
// the command is the compiled program.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { RecoveryChoice } from "../../../src/actors/recovery/findings.ts";
import { Recovery } from "../../../src/actors/recovery/recovery.ts";
import { runCli } from "../../../src/cli/run-cli.ts";
import type { Client, ConnectOptions, ShardFallback } from "../../../src/client/index.ts";
import { hashName, PserverError } from "../../../src/protocol/index.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestAuth } from "../../support/auth.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { testProgram } from "../../support/test-program.ts";
import { snapshotAll, untilWatermarkReached } from "./control.ts";
import {
  failureOf,
  flipBitOf,
  type HurtPart,
  hurtUpdate,
  type Place,
  streamDirectory,
  updateRecord,
} from "./damage.ts";
import { Archive } from "./journal-fold.ts";

const WAIT = { timeout: HANG_MS, interval: 20 };

/** The compiled program; `make programs` makes it. */
const PROGRAM = testProgram("recover-process");

let job: TestJob;
/** What trainers were told, by trainer. */
let told: Map<string, ShardFallback[]>;

afterEach(async () => {
  await job.remove();
});

/** A counter on each shard: the names differ in their hash. */
const [HURT = "", SOUND = ""] = [0, 1].map((shard) => {
  const names = Array.from({ length: 100 }, (_, i) => `count-${i}`);
  return names.find((name) => hashName(name) % 2 === shard) ?? "";
});
const ONE = BigInt64Array.of(1n);

/** A job whose counters are 0. */
async function start(
  options: Partial<HostOptions> = {},
): Promise<{ host: TestHost; client: Client }> {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 2, ...options });
  told = new Map();
  const host = await job.host();
  const client = await trainer("a");
  // Each by itself, so that it lies where its name's hash says.
  for (const name of [HURT, SOUND]) {
    await client.createIfNotAlreadyCreated(name, BigInt64Array.of(0n));
  }
  return { host, client };
}

function trainer(id: string, options: Partial<ConnectOptions> = {}): Promise<Client> {
  const heard: ShardFallback[] = [];
  told.set(id, heard);
  return job.trainer(id, { onFallback: (fallback) => heard.push(fallback), ...options });
}

async function raise(client: Client, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await Promise.all([HURT, SOUND].map((name) => client.pushFull(name, ONE, 1, 1)));
  }
}

async function count(client: Client, name: string = HURT): Promise<number> {
  return Number((await client.pullFull(name)).data[0] ?? -1);
}

function recover(...args: string[]): Promise<Finished> {
  return run(["recover", "--job", job.job, "--url", job.broker.url, ...args]);
}

/** What the command finds of a shard. */
async function findings(shard = 0): Promise<Record<string, unknown>> {
  const { stdout } = await recover("--json", "--shard", String(shard));
  return JSON.parse(stdout).shards[0];
}

/** Twenty updates of each counter, of which the ninth is damaged; a host that has found it out. */
async function stopped(part?: HurtPart): Promise<Place & { host: TestHost; client: Client }> {
  const { host, client } = await start();
  await raise(client, 20);
  // So that what is found is a gap in the journal, and not that the record of the watermark is gone.
  await untilWatermarkReached(job);
  const place = await hurtUpdate(job, host, 9, part);
  const second = await job.host();
  expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
  return { host: second, client, ...place };
}

/** The last record of shard 0's journal. */
async function lastRecord(): Promise<number> {
  await using archive = await Archive.open(job.broker.url, job.job);
  return await archive.lastRecord(0);
}

/** The records that the last snapshots of shard 0 were taken at, the oldest first. */
async function snapshotRecords(): Promise<[older: number, newer: number]> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const [newer = 0, older = 0] = new Set(
    (await archive.manifests(0)).map(({ manifest }) => manifest.seq).toReversed(),
  );
  return [older, newer];
}

/** Waits until the host serves shard 0 again. */
async function servedAgain(host: TestHost): Promise<void> {
  await host.until(() => host.serving.includes(0));
}

describe("a journal with a damaged record", () => {
  test("is shown as it is, and changed by nobody who has not said yes", async () => {
    const { at, last } = await stopped();
    const lost = last - at + 1;
    await using archive = await Archive.open(job.broker.url, job.job);
    const before = await archive.snapshotMessages(0);
    const shown = await recover();
    expect(shown).toMatchObject({
      code: 1,
      stderr:
        "nothing was changed; to accept the loss: pserver recover --job j --from prefix --yes\n",
    });
    const lines = shown.stdout.trimEnd().split("\n");
    expect(lines).toEqual([
      `shard 0 has stopped: JOURNAL_DAMAGED: shard 0: expected record ${at}; found ${at + 1}`,
      expect.stringMatching(
        new RegExp(`^ {2}journal {4}PS_j_0: records 1 to ${last}, [\\d.]+ KiB$`),
      ),
      `             record ${at}: cannot be read`,
      `  existed    record ${last} of generation 1 is the last one known`,
      "  snapshots  record 0 of generation 1: older than 1 block of initialized parameters",
      "             record 0 of generation 1: older than 1 block of initialized parameters",
      `  choices    1. prefix: the journal as far as it can be read, record ${at - 1} of generation 1`,
      `                gives up records ${at} to ${last}, ${lost} records: ${lost - 1} of a, 1 whose sender is unknown`,
    ]);
    expect(await findings()).toMatchObject({
      condition: "stopped",
      error: { code: "JOURNAL_DAMAGED" },
      generation: 1,
      lastKnownSeq: last,
      journal: { firstSeq: 1, lastSeq: last, gaps: [{ from: at, to: at, kind: "unreadable" }] },
      choices: [
        { from: "prefix", generation: 1, seq: at - 1, lost: { from: at, to: last, records: lost } },
      ],
    });
    expect(await archive.snapshotMessages(0)).toEqual(before);
    const { stderr, code } = await recover("--from", "snapshot", "--yes");
    expect([code, stderr]).toEqual([
      3,
      `pserver: BAD_VALUE: shard 0: expected prefix at record ${at - 1}; received snapshot\n`,
    ]);
    expect(await archive.snapshotMessages(0)).toEqual(before);
  });

  test("that the broker gives with other bytes is named, and the shard continues before it", async () => {
    const { client, at, last } = await stopped("subject-length");
    const { stdout } = await recover();
    const other = `record ${at} is another than the one that was folded`;
    expect(stdout).toContain(`shard 0 has stopped: JOURNAL_DAMAGED: shard 0: ${other}\n`);
    expect(stdout).toContain(`             record ${at}: another than was folded\n`);
    expect(await findings()).toMatchObject({
      error: { code: "JOURNAL_DAMAGED", details: { seq: at } },
      journal: { lastSeq: last, gaps: [], changed: { from: at, to: at } },
      choices: [{ from: "prefix", seq: at - 1, lost: { from: at, to: last } }],
    });
    expect(await recover("--from", "prefix", "--yes")).toMatchObject({ code: 0 });
    expect(await count(client)).toBe(8);
  });

  test("continues from its prefix on the running host; every trainer is told once what is lost", async () => {
    const { host, client, at, last } = await stopped();
    const late = await trainer("late");
    expect(await count(late, SOUND)).toBe(20);
    const done = await recover("--from", "prefix", "--yes");
    expect(done).toMatchObject({
      code: 0,
      stderr:
        `shard 0 goes on from record ${at - 1} under generation 2: ` +
        `records ${at} to ${last} of generation 1 are lost\nserved again: shard 0\n`,
    });
    // The command has waited until the shard is served: a read waits for nothing and is not refused.
    expect(await count(await trainer("next"))).toBe(8);
    expect(await host.line(({ type }) => type === "shard-recovered")).toMatchObject({
      shard: 0,
      generation: 2,
      fallbacks: [{ generation: 1, from: at, to: last }],
    });
    expect(await count(client)).toBe(8);
    expect(await count(late)).toBe(8);
    await raise(client, 3);
    expect([await count(client), await count(client, SOUND)]).toEqual([11, 23]);
    const lost = { shard: 0, generation: 1, lost: { from: at, to: last } };
    await vi.waitFor(() => expect(told.get("a")).toEqual([lost]), WAIT);
    // It had seen nothing of the shard that is lost.
    expect(told.get("late")).toEqual([]);

    // The new journal counts from 1; the old one is kept and takes nothing.
    await using archive = await Archive.open(job.broker.url, job.job);
    const { streams } = await jetstreamManager(archive.connection);
    expect((await archive.journal(0, 2)).first).toBe(1);
    expect((await updateRecord(streams, "PS_j_0_2", 3)).at).toBeLessThan(at);
    expect((await archive.records(0, 1)).at(-1)?.seq).toBe(last);
    const status = await run(["status", "--job", "j", "--url", job.broker.url]);
    expect(status.stdout).toContain(`shard 0: records ${at} to ${last} of generation 1 are lost`);
    expect(await recover()).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "no shard of job j has stopped for a loss\n",
    });
    // Whoever takes it over next goes on there, and knows the same.
    await host.kill();
    await job.host();
    await raise(client, 1);
    expect(await count(client)).toBe(12);
    expect(told.get("a")).toEqual([lost]);
  });

  test("is waited for while no host answers, where one answered before", async () => {
    const { host } = await start({ leaseMs: LASTING_LEASE_MS });
    await raise(await trainer("b"), 20);
    await hurtUpdate(job, host, 9);
    await job.crash(host);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    const reach = { servers: [job.broker.url], timeoutMs: HANG_MS };
    const recovery = await Recovery.open(reach, job.job);
    onTestFinished(() => recovery.close());
    const found = await recovery.inspect(0);
    const recovered = await recovery.recover(found, found.choices[0] as RecoveryChoice);
    await job.crash(second);
    // It hears the questions, and answers none.
    await using archive = await Archive.open(job.broker.url, job.job);
    const questions = archive.connection.subscribe(`ps.${job.job}.owner.0.*.status`);
    await archive.connection.flush();
    const waiting = recovery.awaitOwner(recovered, new AbortController().signal);
    const askedAgain = async (): Promise<void> => {
      let asked = 0;
      // By the third the time of the first question has passed.
      for await (const _ of questions) if (++asked === 3) return;
    };
    await Promise.race([askedAgain(), waiting]);
    await job.host();
    expect(await waiting).toBeUndefined();
  });

  test("continues although nobody owns it, and hosts come later", async () => {
    const { host, client } = await start();
    await raise(client, 20);
    await hurtUpdate(job, host, 9);
    expect(await findings()).toMatchObject({ error: { code: "JOURNAL_DAMAGED" } });
    expect(await recover("--from", "prefix", "--yes", "--shard", "0")).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/\nwarning: not served yet: shard 0: NO_OWNER: .* start one/),
    });
    expect(await findings()).toMatchObject({ condition: "whole", generation: 2 });
    await job.host();
    expect(await count(client)).toBe(8);
  });
});

describe("a recovery that is interrupted", () => {
  async function killedAt(killAt: string): Promise<void> {
    const request = { url: job.broker.url, job: job.job, shard: 0, from: "prefix", killAt };
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(request)], { stdio: "inherit" });
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
  }

  test("before it is committed changes nothing, and is made again", async () => {
    const { host, client } = await stopped();
    for (const step of ["loaded", "folded"]) {
      await killedAt(step);
      expect(await findings()).toMatchObject({ condition: "stopped", generation: 1 });
    }
    await recover("--from", "prefix", "--yes");
    await servedAgain(host);
    expect(await count(client)).toBe(8);
  });

  test("after that is completed by the host", async () => {
    const { host, client, at, last } = await stopped();
    await killedAt("committed");
    await servedAgain(host);
    expect(await count(client)).toBe(8);
    await raise(client, 2);
    expect(await count(client)).toBe(10);
    await using archive = await Archive.open(job.broker.url, job.job);
    expect((await archive.manifests(0)).at(-1)?.manifest).toMatchObject({
      generation: 2,
      fallbacks: [{ generation: 1, from: at, to: last }],
    });
  });
});

describe("a person who is asked", () => {
  /** Runs the command in this process, as in a terminal, and answers its question. */
  async function answer(
    { at }: Place,
    act: (stdin: PassThrough, interrupt: () => void) => void,
  ): Promise<number> {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const controller = new AbortController();
    const args = ["recover", "--job", job.job, "--url", job.broker.url];
    const { signal } = controller;
    const ended = runCli(args, { stdin, stdout, stderr, environment: {}, signal });
    let asked = "";
    for await (const text of stderr.setEncoding("utf8")) {
      asked += text;
      if (asked.includes("go on from")) break;
    }
    expect(asked).toBe(
      "shard 0: go on from prefix: the journal as far as it can be read, " +
        `record ${at - 1} of generation 1? [y/N] `,
    );
    act(stdin, () => controller.abort(new PserverError("ABORTED", "interrupted by SIGINT")));
    return await ended;
  }

  test("changes nothing with Ctrl-C, with no, and by going away; recovers with yes", async () => {
    const { host, client, ...place } = await stopped();
    expect(await answer(place, (_stdin, interrupt) => interrupt())).toBe(130);
    expect(await answer(place, (stdin) => stdin.write("\n"))).toBe(1);
    expect(await answer(place, (stdin) => stdin.end())).toBe(1);
    expect(await findings()).toMatchObject({ condition: "stopped", generation: 1 });
    expect(await answer(place, (stdin) => stdin.write("y\n"))).toBe(0);
    await servedAgain(host);
    expect(await count(client)).toBe(8);
  });
});

describe("a shard with snapshots", () => {
  test("continues from the last one, or an older one, where that is asked for", async () => {
    const { host, client } = await start();
    await raise(client, 3);
    await snapshotAll(job);
    await raise(client, 4);
    await snapshotAll(job);
    await raise(client, 5);
    const [older, newer] = await snapshotRecords();
    const { at, last } = await hurtUpdate(job, host, 11);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    const lostAfter = (seq: number): unknown => ({ from: seq + 1, to: last, records: last - seq });
    expect(await findings()).toMatchObject({
      choices: [
        { from: "prefix", seq: at - 1, lost: lostAfter(at - 1) },
        { from: "snapshot", seq: newer, lost: lostAfter(newer) },
        { from: "snapshot", seq: older, lost: lostAfter(older) },
      ],
    });
    const chosen = ["--from", "snapshot", "--record", String(older), "--yes"];
    expect(await recover(...chosen)).toMatchObject({ code: 0 });
    await servedAgain(second);
    expect([await count(client), await count(client, SOUND)]).toEqual([3, 12]);
    const lost = { shard: 0, generation: 1, lost: { from: older + 1, to: last } };
    await vi.waitFor(() => expect(told.get("a")).toEqual([lost]), WAIT);
  });

  test("of which none is whole cannot be saved once the journal has given up its beginning", async () => {
    const { host, client } = await start({ retainBytes: 1 });
    await using archive = await Archive.open(job.broker.url, job.job);
    const pieces: Uint8Array[] = [];
    for (let i = 0; i < 2; i++) {
      await raise(client, 3);
      await snapshotAll(job);
      const newest = (await archive.manifests(0)).at(-1)?.manifest.pieces[0];
      if (newest !== undefined) pieces.push(await archive.snapshotMessage(newest));
    }
    await archive.close();
    await host.kill();
    await job.broker.stop();
    for (const piece of pieces) await flipBitOf(streamDirectory(job, "PS_j_SNAPSHOT"), piece);
    await job.broker.start();
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("SNAPSHOT_DAMAGED");
    const shown = await recover();
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain(
      "choices    nothing of it can be saved: remove the job with pserver remove, and load the last saved model",
    );
    expect((await recover("--from", "prefix", "--yes")).code).toBe(3);
  });

  test("of which no manifest is left continues from a journal that reaches back to its first record", async () => {
    const { host, client } = await start();
    await raise(client, 20);
    const { at } = await hurtUpdate(job, host, 9);
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    const filter = archive.subjects.manifest(0);
    await manager.streams.purge(archive.subjects.snapshotStream(), { filter });
    expect(await findings()).toMatchObject({
      condition: "stopped",
      error: { code: "SNAPSHOT_DAMAGED" },
      snapshots: [],
      choices: [{ from: "prefix", generation: 1, seq: at - 1 }],
    });
    const { stdout } = await recover("--from", "prefix", "--yes", "--json");
    expect(JSON.parse(stdout).recovered).toMatchObject([{ shard: 0, served: false }]);
    await job.host();
    expect(await count(client)).toBe(8);
  });
});

test("a journal that lost its newest records under a running host continues from what there is", async () => {
  const { host, client } = await start();
  await raise(client, 5);
  const kept = await lastRecord();
  const copy = join(job.broker.storeDir, "copy");
  const journal = streamDirectory(job, "PS_j_0");
  await job.broker.stop();
  await cp(journal, copy, { recursive: true });
  await job.broker.start();
  await raise(client, 5);
  await untilWatermarkReached(job);
  const last = await lastRecord();
  await job.broker.stop();
  await rm(journal, { recursive: true });
  await cp(copy, journal, { recursive: true });
  await job.broker.start();
  expect(await failureOf(host, 0)).toBe("JOURNAL_LOST");
  expect(await findings()).toMatchObject({
    lastKnownSeq: last,
    choices: [
      {
        from: "prefix",
        seq: kept,
        lost: { from: kept + 1, to: last, records: last - kept, unknown: last - kept },
      },
    ],
  });
  const { stdout } = await recover("--from", "prefix", "--yes", "--json");
  expect(JSON.parse(stdout).recovered).toMatchObject([{ shard: 0, generation: 2, served: true }]);
  expect([await count(client), await count(client, SOUND)]).toEqual([5, 10]);
  const lost = { shard: 0, generation: 1, lost: { from: kept + 1, to: last } };
  await vi.waitFor(() => expect(told.get("a")).toEqual([lost]), WAIT);
});

describe("a shard that has not stopped", () => {
  test("is left alone, whether it is named or not", async () => {
    await start();
    expect(await recover("--shard", "1", "--from", "prefix", "--yes")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(
        "shard 1: expected one that has stopped because something is lost; it is served",
      ),
    });
    expect(await recover("--from", "prefix", "--yes")).toMatchObject({ code: 0, stdout: "" });
    expect(await recover("--shard", "7")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("--shard: expected 0 to 1; received 7"),
    });
    expect(await recover("--yes")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(
        "--yes: expected --from or --entries with it; received neither",
      ),
    });
  });

  test("of a job that does not exist is refused", async () => {
    await start();
    const { code, stderr } = await run(["recover", "--job", "other", "--url", job.broker.url]);
    expect(code).toBe(3);
    expect(stderr).toContain("BAD_NAME: the broker holds no job other");
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    await expect(manager.streams.info("KV_PS_other")).rejects.toThrow("stream not found");
  });
});

describe("a journal in memory", () => {
  test("that lost a record continues from the records before it", async () => {
    const { host, client } = await start({ journal: "memory" });
    await raise(client, 20);
    await host.kill();
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    const { at, last } = await updateRecord(manager.streams, "PS_j_0", 9);
    await manager.streams.deleteMessage("PS_j_0", at);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    expect(await findings()).toMatchObject({
      journal: { gaps: [{ from: at, to: at, kind: "empty" }] },
    });
    expect(await recover("--from", "prefix", "--yes")).toMatchObject({ code: 0 });
    await servedAgain(second);
    expect([await count(client), await count(client, SOUND)]).toEqual([8, 20]);
    await expect(manager.streams.info("PS_j_0")).rejects.toThrow("stream not found");
    const lost = { shard: 0, generation: 1, lost: { from: at, to: last } };
    await vi.waitFor(() => expect(told.get("a")).toEqual([lost]), WAIT);
  });

  test("that was lost with broker and host falls back to the last snapshot, and its trainer is told", async () => {
    const { host, client } = await start({ journal: "memory" });
    await raise(client, 3);
    await snapshotAll(job);
    const [, saved] = await snapshotRecords();
    await raise(client, 4);
    const last = await lastRecord();
    await host.kill();
    await job.broker.kill();
    await job.broker.start();
    await job.host();
    expect(await count(client)).toBe(3);
    const lost = { generation: 1, lost: { from: saved + 1, to: last } };
    await vi.waitFor(() => expect(told.get("a")).toContainEqual({ shard: 0, ...lost }), WAIT);
  });

  test("that was lost with the broker alone loses nothing, and nobody is told anything", async () => {
    const { client } = await start({ journal: "memory" });
    await raise(client, 3);
    await job.broker.kill();
    await job.broker.start();
    await raise(client, 3);
    expect([await count(client), await count(client, SOUND)]).toEqual([6, 6]);
    expect(told.get("a")).toEqual([]);
  });
});

describe("the broker", () => {
  test("need not have storage for two journals: the abandoned one reserves no more than it holds", async () => {
    const MIB = 1024 ** 2;
    told = new Map();
    // Two journals, a quarter of theirs for the tape and for snapshots, 16 MiB for entries and leases, and 2 MiB.
    const room = { jetstreamConfig: `max_file_store: ${66 * MIB}` };
    job = await TestJob.start(
      { leaseMs: QUICK_LEASE_MS, shards: 2, journalBytesMax: 16 * MIB },
      room,
    );
    const host = await job.host();
    const client = await trainer("a");
    await client.createIfNotAlreadyCreated(HURT, BigInt64Array.of(0n));
    for (let i = 0; i < 5; i++) await client.pushFull(HURT, ONE, 1, 1);
    await hurtUpdate(job, host, 3);
    expect(await recover("--from", "prefix", "--yes")).toMatchObject({ code: 0 });
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    const left = await manager.streams.info("PS_j_0");
    expect(left.config.max_bytes).toBe(left.state.bytes);
    expect(left.config.subjects).toEqual(["ps.j.left.0.1"]);
    expect((await manager.streams.info("PS_j_0_2")).config.max_bytes).toBe(16 * MIB);
    await job.host();
    expect(await count(client)).toBe(2);
  });

  test("lets the admin of a job with users recover", async () => {
    const auth = await TestAuth.make("mnist", ["trainer-1"]);
    onTestFinished(() => auth.remove());
    job = await TestJob.start({ leaseMs: QUICK_LEASE_MS }, { authFile: auth.directory.configFile });
    const servers = [job.broker.url];
    const options = { job: "mnist", shards: 1, ...auth.host(servers) };
    const host = await job.host(options);
    const client = await job.trainer("trainer-1", {
      ...{ job: "mnist", ...auth.trainer("trainer-1"), onFallback: () => undefined },
    });
    await client.createIfNotAlreadyCreated(HURT, BigInt64Array.of(0n));
    for (let i = 0; i < 5; i++) await client.pushFull(HURT, ONE, 1, 1);
    await host.kill();
    const role = { name: "test", inboxPrefix: "_INBOX_mnist.=host.test" };
    const connection = await openConnection(auth.as("admin", servers), role);
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const { at } = await updateRecord(manager.streams, "PS_mnist_0", 3);
    await manager.streams.deleteMessage("PS_mnist_0", at);
    await connection.close();
    const second = await job.host(options);
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    const args = [
      "recover",
      "--job",
      "mnist",
      "--url",
      job.broker.url,
      "--from",
      "prefix",
      "--yes",
    ];
    expect(await run(args, { environment: auth.variables("admin") })).toMatchObject({ code: 0 });
    await servedAgain(second);
    expect(await count(client)).toBe(2);
  });
});
