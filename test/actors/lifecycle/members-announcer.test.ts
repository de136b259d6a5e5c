// Proves that journals are told the newest members, not each of many changes that come while they are
// being told, and that nobody hears "told" before the journals have been.
import { expect, test } from "vitest";
import { MembersAnnouncer } from "../../../src/actors/lifecycle/members.ts";
import type { HostRecord, MembersRecord, Position } from "../../../src/protocol/index.ts";

const SHARDS = 2;

function members(revision: number): MembersRecord {
  return { verb: "members", revision, started: true, trainers: [] };
}

test("of the changes that come while journals are told, the last is told", async () => {
  const appended: [shard: number, revision: number][] = [];
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const announcer = new MembersAnnouncer({
    shards: SHARDS,
    owners: {
      async append(shard: number, record: HostRecord): Promise<Position> {
        appended.push([shard, "revision" in record ? record.revision : 0]);
        await gate;
        return { generation: 1, seq: appended.length };
      },
    },
    onError: (error) => {
      throw error;
    },
  });
  const ended: number[] = [];
  const announce = async (revision: number): Promise<void> => {
    await announcer.announce(members(revision));
    ended.push(revision);
  };
  const first = announce(1);
  await Promise.resolve();
  const rest = Promise.all([announce(4), announce(2), announce(3)]);
  expect(ended).toEqual([]);
  open();
  await Promise.all([first, rest]);
  expect(ended).toEqual([1, 4, 2, 3]);
  expect(appended).toEqual([
    [0, 1],
    [1, 1],
    [0, 4],
    [1, 4],
  ]);
});
