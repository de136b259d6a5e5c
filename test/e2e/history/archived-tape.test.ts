// Proves on a real broker how far the tape reaches: an archive that was begun after the journals were trimmed
// lists every update of the job without the broker, as the broker lists it, and so does an archiver that
// followed; an update whose record is trimmed is found and can begin a listing; `status` and `doctor` show
// what the tape takes.
import { afterEach, expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import type { UpdateEvent } from "../../../src/history/index.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { readUpdates, resolveRange } from "../../../src/history/read-updates.ts";
import type { HistorySource } from "../../../src/history/source.ts";

import { snapshotAll } from "../host/control.ts";
import { type ArchivedJob, archivedJobOfEachTest } from "./archived-job.ts";

const { signal } = new AbortController();
const each = archivedJobOfEachTest();
const opened: HistorySource[] = [];

afterEach(async () => {
  for (const source of opened.splice(0)) await source.close();
});

/** Opens a history for the rest of the test. */
async function open(place: Parameters<typeof openHistory>[0]): Promise<HistorySource> {
  const source = await openHistory(place);
  opened.push(source);
  return source;
}

/** All updates of a source; those that are folded have more digits than the tape's. */
async function updatesOf(source: HistorySource): Promise<object[]> {
  const range = await resolveRange(source, { kind: "start" }, { kind: "now" }, signal);
  const found: object[] = [];
  for await (const events of readUpdates(source, { ...range, signal })) {
    found.push(...events.map(asKept));
  }
  return found;
}

function asKept({ block, timeMs, ...event }: UpdateEvent): object {
  const { statistics, ...change } = block ?? {};
  const { norm = 0, mean = 0, ...exact } = statistics ?? {};
  const [roundedMs, floats] = [Math.round(timeMs * 1000), [norm, mean].map(Math.fround)];
  return { ...event, roundedMs, ...change, ...exact, floats };
}

/** Trains until the journals have lost their beginning. */
async function trainAndTrim(archived: ArchivedJob): Promise<void> {
  await archived.train(60);
  await snapshotAll(archived.job);
  const live = await open(archived.place());
  const [span] = await live.shard(0).spans();
  expect(span?.firstSeq).toBeGreaterThan(1);
}

test("an archive that was begun late lists all updates of the job without the broker", async () => {
  const archived = await each.start();
  const { directory } = archived;
  await trainAndTrim(archived);
  await archived.archiveOnce();
  const alone = await updatesOf(await open({ kind: "archive", archive: directory }));
  expect(alone).toEqual(await updatesOf(await open(archived.place())));
  expect(alone.filter((event) => "operation" in event)).toHaveLength(4 + 4 * 60);
  // Updates that the archive does not have come from the broker.
  await archived.train(2);
  const joined = await updatesOf(await open(archived.place(directory)));
  expect(joined.slice(0, alone.length)).toEqual(alone);
  expect(joined.length).toBe(alone.length + 8);
  const { stdout, code } = await archived.pserver(
    ...["log", "--archive", directory, "--no-broker", "--param", "w", "--json"],
  );
  const lines = stdout.trim().split("\n");
  expect([code, lines.length]).toEqual([0, 61]);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ op: "init", parameter: "w" });
});

test("an archiver that follows a job and is killed leaves a tape that the next one completes", async () => {
  const archived = await each.start();
  const { directory } = archived;
  for (let life = 0; life < 3; life++) {
    const archiver = archived.archiver();
    await archived.train(3);
    await archived.untilArchived();
    archiver.child.kill("SIGKILL");
    await archiver.finished;
  }
  // Snapshots wait for the tape, so it has all lines afterwards.
  await snapshotAll(archived.job);
  await archived.archiveOnce();
  const { shards, damage } = await checkArchive(directory, signal);
  expect(damage).toEqual([]);
  const status = JSON.parse((await archived.pserver("status", "--json")).stdout);
  const messages = shards.reduce((sum, { tape }) => sum + tape.messages, 0);
  expect(messages).toBe(status.tape.messages);
  expect(shards.map(({ tape }) => tape.missing)).toEqual([0, 0]);
  const alone = await open({ kind: "archive", archive: directory });
  expect(await updatesOf(alone)).toEqual(await updatesOf(await open(archived.place())));
});

test("an update whose record was trimmed is found, and a listing can begin there", async () => {
  const archived = await each.start();
  await trainAndTrim(archived);
  const json = async (...args: string[]) => {
    const { stdout, stderr, code } = await archived.pserver(...args, "--param", "w", "--json");
    expect([code, stderr]).toEqual([0, ""]);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  const all = await json("log");
  const { trainer, session, number, shard, seq } = all[5];
  const since = await json("log", "--since", `${trainer}/${session}:${number}@${shard}`);
  expect(since.map((line) => line.seq)).toEqual(
    all.slice(6).map((line: { seq: number }) => line.seq),
  );
  const shown = await archived.pserver(
    "show",
    `${trainer}/${session}:${number}@${shard}`,
    "--json",
  );
  const { code, message } = JSON.parse(shown.stderr).error;
  expect(code).toBe("HISTORY_LOST");
  expect(message).toContain(`${shard}:${seq}`);
});

test("status and doctor show what the tape takes", async () => {
  const archived = await each.start();
  await archived.train(2);
  await snapshotAll(archived.job);
  const status = await archived.pserver("status");
  expect(status.stdout).toMatch(/^ {2}tape +\d+ messages, [\d.]+ (B|KiB) of [\d.]+ .iB$/m);
  const doctor = await archived.pserver("doctor");
  expect(doctor.stdout).toMatch(/tape\W+\d+ messages, [\d.]+ (B|KiB) of [\d.]+ .iB/);
});
