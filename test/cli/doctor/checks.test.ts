// Proves the doctor's checks at their limits, each with advice unless all is well.
import type { NatsConnection } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import {
  checkArchivers,
  checkBrokerMemory,
  checkDamagedReplicas,
  checkDiskSpace,
  checkGuarded,
  checkJetStream,
  checkJournals,
  checkLimits,
  checkMaxPayload,
  checkNode,
  checkPermissions,
  checkShards,
  checkStorage,
  checkVersion,
  describeCheck,
} from "../../../src/cli/commands/doctor.ts";

import { makePaint } from "../../../src/cli/output/colors.ts";
import { ROLES, type Role } from "../../../src/client/admin/job-admin.ts";
import type { ListedArchiver } from "../../../src/client/admin/participants.ts";
import { HEADER_BYTES_MAX } from "../../../src/protocol/limits.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

test.each([
  ["20.19.0", "ok"],
  ["20.18.9", "fail"],
  ["18.20.0", "fail"],
  ["24.0.1", "ok"],
])("Node.js %s: %s", (version, status) => {
  expect(checkNode(version, [20, 19]).status).toBe(status);
});

test.each([
  ["2.12.15", "nats-server 2.12.15, recommended"],
  ["2.11.2", "nats-server 2.11.2, supported"],
])("nats-server %s: %s", (version, message) => {
  expect(checkVersion(version)).toMatchObject({ status: "ok", message });
});

test.each([
  [8 * MIB, "ok"],
  [4 * MIB + HEADER_BYTES_MAX, "ok"],
  [4 * MIB, "warn"],
  [256 * KIB, "warn"],
  [256 * KIB - 1, "fail"],
])("max_payload of %d: %s", (bytes, status) => {
  expect(checkMaxPayload(bytes).status).toBe(status);
});

test.each([
  [undefined, "warn", "no limit, and 8 MiB"],
  [8 * MIB, "warn", "limited to 8 MiB of 8 MiB"],
  [8 * MIB - 1, "ok", "limited to 8 MiB of 8 MiB"],
])("a broker that may use %s of 8 MiB: %s", (limitBytes, status, message) => {
  const check = checkBrokerMemory({ limitBytes, totalBytes: 8 * MIB });
  expect(check.status).toBe(status);
  expect(check.message).toContain(message);
});

test.each([
  [5, -1, "ok"],
  [79, 100, "ok"],
  [80, 100, "warn"],
  [95, 100, "fail"],
  [0, 0, "fail"],
])("%d bytes of %d: %s", (used, limit, status) => {
  expect(
    checkStorage("file storage", { usedBytes: used, reservedBytes: 7, limitBytes: limit }).status,
  ).toBe(status);
});

test("tells that the limits of the streams exceed the account's together", () => {
  const bytes = { usedBytes: 1, reservedBytes: 101, limitBytes: 100 };
  expect(checkStorage("file storage", bytes)).toMatchObject({
    status: "warn",
    message: expect.stringMatching(/exceed it together/),
  });
  expect(checkStorage("file storage", { ...bytes, reservedBytes: 100 }).status).toBe("ok");
});

test("names the streams without a limit, which can take the space of leases", () => {
  const streams = [
    { name: "PS_j_0", bytes: 1, limitBytes: 2 },
    { name: "EVENTS", bytes: 1, limitBytes: -1 },
  ];
  expect(checkLimits(streams)).toMatchObject({
    status: "warn",
    message: expect.stringMatching(/^EVENTS: none/),
    advice: expect.stringMatching(/leases/),
  });
  expect(checkLimits(streams.slice(0, 1)).status).toBe("ok");
});

test("shows what is reserved beside what is used", () => {
  const bytes = { usedBytes: 2 * KIB, reservedBytes: 3 * MIB, limitBytes: -1 };
  expect(checkStorage("file storage", bytes).message).toMatch(
    /^2(\.0)? KiB used, 3(\.0)? MiB reserved/,
  );
});

test.each([
  [10, 4, 14, "ok"],
  [9, 4, 14, "warn"],
  [0, 0, 0, "ok"],
])("%d bytes free where %d of %d reserved are used: %s", (freeBytes, bytes, limitBytes, status) => {
  // What a stream without a limit holds makes no room for the others.
  const streams = [
    { name: "PS_j_0", bytes, limitBytes },
    { name: "KV", bytes: 99, limitBytes: -1 },
  ];
  expect(checkDiskSpace(freeBytes, streams).status).toBe(status);
});

describe("permissions", () => {
  const refused = { trainer: ["publish a"], observer: [], store: [], answers: [] };
  const statuses = (...roles: Role[]): string[] =>
    checkPermissions({ roles: new Set(roles), refused }, "t").map(({ status }) => status);

  test("of one role are enough, and others are not checked", () => {
    expect(statuses("trainer", "observer")).toEqual(["ok", "skip", "skip"]);
    expect(statuses("observer")).toEqual(["ok", "skip", "skip"]);
    expect(statuses("store")).toEqual(["skip", "ok", "skip"]);
    expect(statuses("answers")).toEqual(["skip", "skip", "ok"]);
    expect(statuses(...ROLES)).toEqual(["ok", "ok", "ok"]);
  });

  test("for no role are a failure that names what a trainer lacks", () => {
    const [check] = checkPermissions({ roles: new Set(), refused }, "t");
    expect(check).toMatchObject({ status: "fail", message: "the broker refuses publish a" });
  });
});

test("names the fullest journal once it is three quarters full", () => {
  const journals = [
    { name: "PS_j_0", bytes: 10, limitBytes: 100 },
    { name: "PS_j_1", bytes: 75, limitBytes: 100 },
    { name: "PS_j_2", bytes: 1000, limitBytes: -1 },
  ];
  const check = checkJournals("j", journals);
  expect(check.status).toBe("warn");
  expect(check.message).toContain("PS_j_1 is 75 % full");
  expect(checkJournals("j", journals.slice(0, 1)).status).toBe("ok");
  expect(checkJournals("j", []).status).toBe("ok");
});

test("a broker without JetStream is a failure", async () => {
  const connection = { info: { jetstream: false } } as unknown as NatsConnection;
  expect(await checkJetStream(connection, "j", 1000)).toMatchObject([{ status: "fail" }]);
});

test("updates above the limits of guards are a warning that says how to find them", () => {
  const updates = { applied: 1, rejected: 0, guarded: { reject: 0, clip: 3, "set-aside": 1 } };
  const checks = checkGuarded("j", [{ shard: 0, state: "serving", updates }]);
  expect(checks).toMatchObject([{ name: "guards", status: "warn" }]);
  expect(checks[0]?.message).toContain("3 by clip, 1 by set-aside");
  expect(checks[0]?.advice).toContain("pserver find guarded --job j");
  const none = { applied: 1, rejected: 5, guarded: { reject: 0, clip: 0, "set-aside": 0 } };
  expect(checkGuarded("j", [{ shard: 0, state: "serving", updates: none }])).toEqual([]);
});

describe("shards", () => {
  const serving = { shard: 0, state: "serving" };

  test("that are all served are well", () => {
    expect(checkShards([serving]).status).toBe("ok");
  });

  test("that wait for an owner are a warning", () => {
    const check = checkShards([serving, { shard: 1, state: "unowned" }]);
    expect(check).toMatchObject({ status: "warn" });
    expect(check.message).toContain("shard 1: unowned");
  });

  test("that failed are a failure, with the reason", () => {
    const error = { code: "JOURNAL_LOST", message: "from 3 to 7" };
    const check = checkShards([serving, { shard: 4, state: "failed", error }]);
    expect(check.status).toBe("fail");
    expect(check.message).toBe("shard 4: failed; shard 4: JOURNAL_LOST: from 3 to 7");
    expect(check.advice).toContain("pserver recover");
  });
});

describe("archivers", () => {
  const nowMs = 10_000_000;
  const shards = [{ shard: 0, state: "serving", generation: 1, seq: 30 }];
  const archiver = {
    ...{ machine: "m", pid: 7, writtenMs: nowMs - 29_999, completeMs: nowMs - 80_000 },
    shards: [{ record: { generation: 1, seq: 20 } }],
  };
  const check = (archivers: readonly ListedArchiver[], stopped: readonly ListedArchiver[] = []) =>
    checkArchivers({ archivers, stoppedArchivers: stopped, shards }, nowMs);

  test("that keep up are well; without any there is nothing to say", () => {
    expect(check([])).toEqual([]);
    expect(check([archiver])).toEqual([
      { name: "archiver", status: "ok", message: "process 7 on m, 10 records behind" },
    ]);
  });

  test.each([
    [{ ...archiver, writtenMs: nowMs - 30_000 }, "last heard of 30 s ago"],
    [{ ...archiver, completeMs: archiver.writtenMs - 60_000 }, "not complete for 1 min"],
    [
      { ...archiver, failure: { code: "DISK_FULL", message: "no space" } },
      "ended with DISK_FULL: no space",
    ],
  ])("that are silent, lag or have ended are a warning: %j", (one, what) => {
    expect(check([one])).toMatchObject([
      {
        status: "warn",
        message: `process 7 on m, 10 records behind, ${what}`,
        advice: expect.any(String),
      },
    ]);
  });

  test("for which hosts wait no more are a warning with what to do", () => {
    const [found] = check([], [archiver]);
    expect(found).toMatchObject({ status: "warn", message: expect.stringMatching(/^stopped: /) });
    expect(found?.advice).toContain("pserver archive");
  });
});

test("a broker with damaged copies of journals is named once, with what to do", () => {
  const copy = (broker: string, from: number, to: number, isOther = false) => {
    return { broker, from, to, isOther };
  };
  const shards = [
    { shard: 0, state: "serving" },
    { shard: 1, state: "serving", damagedReplicas: [copy("b", 5, 5), copy("a", 7, 9)] },
    { shard: 2, state: "serving", damagedReplicas: [copy("b", 6, 6)] },
  ];
  const checks = checkDamagedReplicas(shards);
  expect(checks.map(({ status, message }) => [status, message])).toEqual([
    ["warn", "broker a has damaged copies of journals: shard 1, records 7 to 9"],
    ["warn", "broker b has damaged copies of journals: shard 1, record 5; shard 2, record 6"],
  ]);
  expect(checks[0]?.advice).toContain("move its store_dir away");
  expect(checkDamagedReplicas(shards.slice(0, 1))).toEqual([]);
  const other = { shard: 3, state: "serving", damagedReplicas: [copy("c", 8, 8, true)] };
  const [check] = checkDamagedReplicas([other]);
  expect(check?.message).toBe("broker c has other records than were folded: shard 3, record 8");
  expect(check?.advice).toContain("updates that the others lost");
});

test("a check takes one line, and one with what to do", () => {
  const look = { paint: makePaint(false), width: Number.POSITIVE_INFINITY };
  expect(describeCheck({ name: "n", status: "ok", message: "m" }, look)).toEqual(["ok    n: m"]);
  expect(
    describeCheck({ name: "n", status: "fail", message: "m\u001b", advice: "do it" }, look),
  ).toEqual(["FAIL  n: m\\x1b", "      -> do it"]);
});

test.each([60, 80, 120])("in %i columns every check fits, its lines below each other", (width) => {
  const words = "a message of many words ".repeat(8).trim();
  const check = {
    name: "host permissions",
    status: "warn",
    message: words,
    advice: words,
  } as const;
  const lines = describeCheck(check, { paint: makePaint(false), width });
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  expect(lines.map((line) => line.trim()).join(" ")).toBe(
    `warn  host permissions: ${words} -> ${words}`,
  );
  for (const line of lines.slice(1)) expect(line).toMatch(/^ {6}(?:-> | {3})?[a-z]/);
});
