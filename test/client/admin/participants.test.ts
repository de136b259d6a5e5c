// Proves that the hosts' reply is read with what a newer host may add, and refused if malformed.
import { expect, test } from "vitest";
import {
  closedSteps,
  idleShards,
  parseParticipants,
} from "../../../src/client/admin/participants.ts";

/** The reply about a job in which nobody takes part. */
const NOTHING = {
  ...{ hosts: [], trainers: [], shards: [], archivers: [], stoppedArchivers: [] },
  declared: { parameters: 0, heldBytes: 0 },
  synchronization: { mode: "async" },
};

test("reads hosts, trainers and shards", () => {
  const reply = {
    ...NOTHING,
    hosts: [{ host: "a", pid: 7, shards: [0, 1] }],
    trainers: ["t"],
    shards: [
      { shard: 0, state: "serving", seq: 3 },
      { shard: 1, state: "unowned" },
      { shard: 2, state: "unowned" },
    ],
  };
  const participants = parseParticipants(reply);
  expect(participants.hosts).toEqual([{ id: "a", pid: 7, shards: [0, 1] }]);
  expect(participants.trainers).toEqual(["t"]);
  expect(participants.shards).toEqual(reply.shards);
  expect([...idleShards(participants.shards)]).toEqual([["unowned", [1, 2]]]);
});

test("reads who keeps step, and how far the shards are", () => {
  const members = { revision: 4, started: true, trainers: ["a", "b"] };
  const shards = [
    { shard: 0, state: "serving", steps: { revision: 4, members: 2, closed: 7 } },
    { shard: 1, state: "unowned" },
    { shard: 2, state: "serving", steps: { revision: 4, members: 2, closed: 5 } },
  ];
  const synchronization = { mode: "ssp", trainers: 2, staleness: 1 };
  const reply = { ...NOTHING, shards, synchronization, members };
  const participants = parseParticipants(reply);
  expect(participants).toMatchObject({ synchronization, members });
  expect(closedSteps(participants.shards)).toEqual({ everywhere: 5, anywhere: 7 });
  expect(closedSteps(shards.slice(1, 2))).toBeUndefined();
  expect(parseParticipants(NOTHING).members).toBeUndefined();
});

test("reads archivers with everything that they tell of themselves", () => {
  const record = { generation: 1, seq: 5 };
  const archiver = { machine: "m", pid: 7, writtenMs: 9, graceMs: 3, shards: [{ record }] };
  const failure = { code: "DISK_FULL", message: "no space" };
  const gone = { ...archiver, completeMs: 8, failure };
  const reply = { ...NOTHING, archivers: [archiver], stoppedArchivers: [gone] };
  const { archivers, stoppedArchivers } = parseParticipants(reply);
  expect([archivers, stoppedArchivers]).toEqual([[archiver], [gone]]);
});

test("reads what the tape takes, if there is one", () => {
  expect(parseParticipants(NOTHING).tape).toBeUndefined();
  const tape = { messages: 3, bytes: 900 };
  expect(parseParticipants({ ...NOTHING, tape }).tape).toEqual(tape);
});

test.each([
  { ...NOTHING, tape: { messages: 1 } },
  { ...NOTHING, archivers: [{ machine: "m", pid: 1, writtenMs: 1 }] },
  { ...NOTHING, archivers: undefined },
  { ...NOTHING, declared: undefined },
  { ...NOTHING, members: { revision: 1, started: true } },
  {},
  { ...NOTHING, hosts: [{ host: 1, shards: [] }] },
  { ...NOTHING, hosts: [{ host: "a", shards: [-1] }] },
  { ...NOTHING, trainers: [{}] },
  { ...NOTHING, shards: [{ shard: 0 }] },
])("refuses %j", (reply) => {
  expect(() => parseParticipants(reply)).toThrow(expect.objectContaining({ code: "BAD_MESSAGE" }));
});
