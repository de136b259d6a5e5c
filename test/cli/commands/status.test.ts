// Proves what `pserver status` says about a job's steps, declared parameters, and unreadable or rejected
// records, and that it says nothing about steps or such records where there are none; about archivers and the
// tape; that it names the shards of which a trainer has reported a loss; that updates are counted where all
// shards report them, and otherwise said to be unknown; and that it fits narrow terminals.
import { expect, test } from "vitest";
import { describeStatus } from "../../../src/cli/commands/status.ts";
import { makePaint } from "../../../src/cli/output/colors.ts";
import type { JobStatus } from "../../../src/client/admin/job-status.ts";
import { toSynchronization } from "../../../src/protocol/config/index.ts";

const PLAIN = { paint: makePaint(false), width: Number.POSITIVE_INFINITY };

const STATUS: JobStatus = {
  job: "j",
  state: "ready",
  epoch: 1,
  by: "a",
  parameters: { count: 1, ready: 1, blocks: 1, bytes: 8 },
  hosts: [{ id: "h", shards: [0, 1] }],
  trainers: ["a"],
  shards: [
    { shard: 0, state: "serving" },
    { shard: 1, state: "serving" },
  ],
  declared: { parameters: 1, heldBytes: 8, quotas: {}, trainers: [] },
  archivers: [],
  stoppedArchivers: [],
  synchronization: { mode: "async" },
};

/** The line about steps, without its title. */
function steps(status: JobStatus): string | undefined {
  const line = describeStatus(status, PLAIN).find((text) => /^ {2}steps/.test(text));
  return line?.replace(/^ {2}steps +/, "");
}

function closed(...all: number[]): JobStatus["shards"] {
  return all.map((step, shard) => {
    return { shard, state: "serving", steps: { revision: 3, members: 2, closed: step } };
  });
}

test("a job without steps has no line about them", () => {
  expect(steps(STATUS)).toBeUndefined();
});

test("mode, members and the closed steps are told", () => {
  const synchronization = toSynchronization({ mode: "sync", trainers: 2, backups: 1 });
  const members = { revision: 3, started: true, trainers: ["a", "b"] };
  const job = { ...STATUS, synchronization, members, shards: closed(7, 7) };
  expect(steps(job)).toBe("sync of 2 trainers and 1 backup, mean; 2 members; step 7 closed");
  expect(steps({ ...job, shards: closed(8, 7) })).toMatch(/step 7 to 8 closed$/);
});

test("that not enough have entered is told, and that no shard answers is no error", () => {
  const synchronization = toSynchronization({ mode: "ssp", trainers: 2, staleness: 3 });
  const members = { revision: 1, started: false, trainers: ["a"] };
  expect(steps({ ...STATUS, synchronization, members })).toBe(
    "ssp of 2 trainers, staleness 3; 1 member, not enough yet",
  );
});

test("shards that do not serve are named before their state, so that no number reads as a count", () => {
  const shards = ["failed", "serving", "failed", "failed", "unowned"].map((state, shard) => {
    return { shard, state };
  });
  const lines = describeStatus({ ...STATUS, shards }, PLAIN).map((line) => line.trim());
  expect(lines).toContain("shards 0, 2-3: failed");
  expect(lines).toContain("shard 4: unowned");
});

test("shards of which a trainer has reported a loss are named, and only those", () => {
  const loss = /later records than there are/;
  const told = (status: JobStatus): string | undefined =>
    describeStatus(status, PLAIN).find((line) => loss.test(line));
  expect(told(STATUS)).toBeUndefined();
  const reportedLoss = { asker: "a", generation: 1, seq: 9, count: 2 };
  const shards = [0, 1, 2, 3].map((shard) => {
    return { shard, state: "serving", ...(shard % 2 === 0 ? { reportedLoss } : {}) };
  });
  expect(told({ ...STATUS, shards })).toMatch(/shards 0, 2: .*than there are$/);
});

test("what is declared is told with its bytes", () => {
  const declared = { parameters: 3, heldBytes: 2_048, quotas: {}, trainers: [] };
  const lines = describeStatus({ ...STATUS, declared }, PLAIN).join("\n");
  expect(lines).toMatch(/declared +3 parameters, 2\.?0? KiB with optimizer state/);
});

test("trainers with unreadable or rejected records are named, for all shards together", () => {
  const senders = { refusedOf: [["b", 2]], unreadableOf: [["eve", 4]] };
  const shards = [0, 1].map((shard) => ({ shard, state: "serving", senders }));
  const lines = describeStatus({ ...STATUS, shards }, PLAIN).join("\n");
  expect(lines).toMatch(
    /from eve: 8 unreadable records\n.*from b: 4 units of work more on rejected records than on/,
  );
});

test("archivers are told with what they have not copied, and since when they are silent", () => {
  const at = (generation: number, seq: number) => ({ record: { generation, seq } });
  const archiver = {
    ...{ machine: "m", pid: 7, writtenMs: Date.now() },
    // The third goes on under a new generation.
    shards: [at(1, 90), at(1, 5), at(1, 900)],
  };
  const shards = [100, 5, 30, 7].map((seq, shard) => {
    const state = shard === 3 ? "failed" : "serving";
    return { shard, state, generation: shard === 2 ? 2 : 1, seq };
  });
  const told = (writtenMs: number): string =>
    describeStatus({ ...STATUS, shards, archivers: [{ ...archiver, writtenMs }] }, PLAIN).join(
      "\n",
    );
  expect(told(Date.now())).toMatch(/archiver +process 7 on m, 40 records behind$/m);
  expect(told(Date.now() - 120_000)).toMatch(/40 records behind, last heard of 2 min ago$/m);
  expect(describeStatus(STATUS, PLAIN).join("\n")).not.toMatch(/archiver/);
  const failure = { code: "DISK_FULL", message: "no space" };
  const gone = { ...archiver, failure, completeMs: archiver.writtenMs - 180_000 };
  const lines = describeStatus({ ...STATUS, shards, stoppedArchivers: [gone] }, PLAIN).join("\n");
  expect(lines.replace(/\s+/g, " ")).toContain(
    "archiver stopped: process 7 on m, 40 records behind, not complete for 3 min, ended with DISK_FULL: no space",
  );
});

test("the tape is shown with its size, where there is one", () => {
  const tape = { messages: 1_234, bytes: 3 * 1024 ** 2, bytesMax: 64 * 1024 ** 2 };
  const line = describeStatus({ ...STATUS, tape }, PLAIN).find((text) => /^ {2}tape/.test(text));
  expect(line).toMatch(/^ {2}tape +1234 messages, 3\.?0? MiB of 64\.?0? MiB$/);
  const full = { ...tape, trimmedToMs: Date.UTC(2026, 0, 2) };
  const lines = describeStatus({ ...STATUS, tape: full }, PLAIN).join(" ");
  expect(lines.replace(/\s+/g, " ")).toContain(
    "lines before 2026-01-02T00:00:00.000Z were dropped",
  );
  expect(describeStatus(STATUS, PLAIN).join("\n")).not.toMatch(/tape/);
});

/** The line about updates, without its title. */
function updates(shards: JobStatus["shards"]): string | undefined {
  const lines = describeStatus({ ...STATUS, shards }, PLAIN);
  return lines.find((text) => /^ {2}updates/.test(text))?.replace(/^ {2}updates +/, "");
}

const NO_GUARDED = { reject: 0, clip: 0, "set-aside": 0 };

test("updates are those of all shards together", () => {
  const shards = [0, 1].map((shard) => ({
    shard,
    state: "serving",
    updates: { applied: 6_000 + shard, rejected: shard, guarded: NO_GUARDED },
  }));
  expect(updates(shards)).toBe("12,001 applied, 1 rejected by the present owners");
});

test("what guards have done is told of all shards together", () => {
  const shards = [1, 2_000].map((count, shard) => ({
    ...{ shard, state: "serving" },
    updates: {
      applied: 0,
      rejected: 0,
      guarded: { ...NO_GUARDED, clip: count, "set-aside": shard },
    },
  }));
  expect(updates(shards)).toBe(
    "0 applied, 0 rejected by the present owners; by guards: 2,001 clipped, 1 set aside",
  );
});

test("updates of shards that do not tell, or have not caught up, are not known", () => {
  const told = { applied: 5, rejected: 0, guarded: NO_GUARDED };
  const serving = { shard: 0, state: "serving", updates: told };
  const behind = { shard: 1, state: "catching-up", updates: told };
  const unowned = { shard: 2, state: "unowned" };
  expect(updates([serving, behind, unowned])).toBe(
    "5 applied, 0 rejected by the present owners; not known of shards 1-2",
  );
  // A host of before tells nothing of updates.
  expect(updates([{ shard: 0, state: "serving" }])).toBe("not known");
});

test.each([60, 80, 120])("fits %i columns, and loses neither shards nor trainers", (width) => {
  const trainers = Array.from({ length: 12 }, (_, i) => `trainer-${i}`);
  const shards = Array.from({ length: 64 }, (_, shard) => ({ shard, state: "unowned" }));
  const even = shards.map(({ shard }) => shard).filter((shard) => shard % 2 === 0);
  const hosts = [{ id: "a-host-with-a-name-that-goes-on-and-on.example", shards: even }];
  const lines = describeStatus(
    { ...STATUS, trainers, shards, hosts },
    { paint: makePaint(false), width },
  );
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  const words = lines.join(" ").split(/[ ,:]+/);
  expect(words).toEqual(expect.arrayContaining([...trainers, "0-63", ...even.map(String)]));
  expect(lines.join("\n")).toMatch(/^a-host.*example? {2}/m);
});

test("a rewind that is not complete is told with its point and the shards that have gone back", () => {
  const at = [
    { generation: 1, seq: 12 },
    { generation: 2, seq: 3 },
  ];
  const told = (goneBack: readonly number[]): string | undefined =>
    describeStatus({ ...STATUS, rewind: { id: "x1", begunMs: 0, at, goneBack } }, PLAIN).find(
      (text) => /^ {2}rewind/.test(text),
    );
  const begun = "x1, begun 1970-01-01T00:00:00.000Z, to the cut 0:12 1:3@2";
  expect(told([1])).toMatch(`not complete: ${begun}; gone back: shard 1 of 2`);
  expect(told([])).toMatch(`not complete: ${begun}; gone back: no shard`);
  expect(describeStatus(STATUS, PLAIN).join("\n")).not.toMatch(/rewind/);
});
