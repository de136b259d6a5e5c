// Proves how the record of members changes, session by session, and that only a sound one is read.
import { describe, expect, test } from "vitest";
import {
  type Members,
  parseMembers,
  toJournalRecord,
  toMembersEntry,
  withMember,
  withoutMembers,
} from "../../../src/actors/lifecycle/members.ts";
import { MEMBERS_MAX } from "../../../src/protocol/index.ts";

const NOBODY = parseMembers(undefined);

function membersOf(sessions: Readonly<Record<string, number>>): Members {
  const members = Object.entries(sessions).map(([trainer, session]) => ({ trainer, session }));
  return { revision: 5, started: true, members };
}

describe("entering", () => {
  test("keeps the order of ids, and starts once enough are there", () => {
    const one = withMember(NOBODY, { trainer: "b", session: 1 }, 2);
    expect(one).toMatchObject({ revision: 1, started: false });
    const two = withMember(one, { trainer: "a", session: 2 }, 2);
    expect(toJournalRecord(two)).toEqual({
      ...{ verb: "members", revision: 2, started: true, trainers: ["a", "b"] },
    });
  });

  test("in the same session or an older one changes nothing, in a newer one replaces", () => {
    const all = membersOf({ a: 3, b: 4 });
    expect(withMember(all, { trainer: "a", session: 3 }, 2)).toBe(all);
    expect(withMember(all, { trainer: "a", session: 2 }, 2)).toBe(all);
    expect(withMember(all, { trainer: "a", session: 9 }, 2)).toEqual({
      ...membersOf({ a: 9, b: 4 }),
      revision: 6,
    });
  });

  test("is refused to one member too many, not to a present one", () => {
    const names = Array.from({ length: MEMBERS_MAX }, (_, i) => [`t-${i}`, 1] as const);
    const all = membersOf(Object.fromEntries(names));
    expect(() => withMember(all, { trainer: "z", session: 1 }, 2)).toThrow(
      expect.objectContaining({ code: "TOO_MANY_TRAINERS" }),
    );
    expect(withMember(all, { trainer: "t-7", session: 2 }, 2).members).toHaveLength(MEMBERS_MAX);
  });
});

describe("leaving the members", () => {
  const all = membersOf({ a: 3, b: 4 });

  test("ends the same session and older ones, not a newer one", () => {
    const left = { ...membersOf({ b: 4 }), revision: 6 };
    expect(withoutMembers(all, [{ trainer: "a", session: 3 }])).toEqual(left);
    expect(withoutMembers(all, [{ trainer: "a", session: 8 }])).toEqual(left);
    expect(withoutMembers(all, [{ trainer: "a", session: 2 }])).toBe(all);
  });

  test("of a trainer that is no member changes nothing, and the job stays started", () => {
    expect(withoutMembers(all, [{ trainer: "c", session: 9 }])).toBe(all);
    const gone = withoutMembers(all, all.members);
    expect(gone).toEqual({ revision: 6, started: true, members: [] });
  });
});

describe("a record", () => {
  const record = toMembersEntry(membersOf({ a: 3 })) as object;
  const stored = (value: unknown) => ({ value, revision: 1 });

  test("is read as it was written", () => {
    expect(parseMembers(stored(JSON.parse(JSON.stringify(record))))).toEqual(membersOf({ a: 3 }));
  });

  test.each<[string, object, string]>([
    ["another format", { format: 2 }, "BAD_VERSION"],
    ["no revision", { revision: 0 }, "JOB_DAMAGED"],
    ["a member without a session", { members: [{ trainer: "a" }] }, "JOB_DAMAGED"],
  ])("with %s is refused", (_what, changes, code) => {
    expect(() => parseMembers(stored({ ...record, ...changes }))).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
