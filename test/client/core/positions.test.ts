// Proves what is kept of the positions that a trainer sees in a shard, and what is told of them.
import { expect, test } from "vitest";
import { noteReplaced, Positions } from "../../../src/client/core/shard-window.ts";
import type { Position } from "../../../src/protocol/messages/position.ts";
import { failureOf } from "./outbox-script.ts";

function watched(): { positions: Positions; told: (Position & { shard: number })[] } {
  const told: (Position & { shard: number })[] = [];
  const positions = new Positions({
    journalReplaced: (shard, { generation, seq }) => told.push({ shard, generation, seq }),
  });
  return { positions, told };
}

test("a position before the highest that was seen changes nothing", () => {
  const { positions } = watched();
  expect(positions.get(2)).toEqual({ generation: 1, seq: 0 });
  positions.note(2, { generation: 1, seq: 9 });
  positions.note(2, { generation: 1, seq: 4 });
  expect(positions.get(2)).toEqual({ generation: 1, seq: 9 });
  positions.note(2, { generation: 2, seq: 1 });
  positions.note(2, { generation: 1, seq: 10 });
  expect(positions.list()).toEqual([{ shard: 2, generation: 2, seq: 1 }]);
});

test("that a journal was replaced is told once, with the last position seen of it", () => {
  const { positions, told } = watched();
  positions.note(0, { generation: 1, seq: 5 });
  positions.note(0, { generation: 1, seq: 9 });
  positions.note(0, { generation: 1, seq: 7 });
  expect(told).toEqual([]);
  positions.note(0, { generation: 2, seq: 1 });
  positions.note(0, { generation: 2, seq: 2 });
  positions.note(0, { generation: 1, seq: 10 });
  expect(told).toEqual([{ shard: 0, generation: 1, seq: 9 }]);
});

test("of a journal of which nothing was seen it is not told that it was replaced", () => {
  const { positions, told } = watched();
  positions.await(0, { generation: 1, seq: 5 });
  positions.note(0, { generation: 2, seq: 1 });
  expect(told).toEqual([]);
});

test("after JOURNAL_REPLACED reads continue from the beginning of the journal that it names", () => {
  const { positions } = watched();
  positions.note(0, { generation: 1, seq: 9 });
  noteReplaced(positions, 0, failureOf("JOURNAL_REPLACED"));
  expect(positions.get(0)).toEqual({ generation: 1, seq: 9 });
  noteReplaced(positions, 0, failureOf("JOURNAL_REPLACED", 3, 7));
  expect(positions.get(0)).toEqual({ generation: 3, seq: 0 });
});
