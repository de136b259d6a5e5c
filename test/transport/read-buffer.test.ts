// Proves that a read buffer never writes to lent memory, that it continues with two pieces of memory however
// many it needed while views were late, that a view which is given back twice, or after its memory was
// reused, does no harm, and that a message which does not fit makes it grow once.
import { describe, expect, test } from "vitest";
import { type Chunk, ReadBuffer } from "../../src/transport/buffers.ts";

const CAPACITY_BYTES = 100;
const ROOM_BYTES_MIN = 30;

/** Reads so many bytes of this value, lends all but the last ones and consumes what it lent. */
function readAndLend(buffer: ReadBuffer, bytes: number, value: number, restBytes = 0): Chunk {
  buffer.target().fill(0).fill(value, 0, bytes);
  buffer.took(bytes);
  const lentBytes = buffer.pending.length - restBytes;
  const chunk = buffer.lend(0, lentBytes);
  buffer.pass(lentBytes);
  return chunk;
}

function giveBack({ bytes, lender }: Chunk): void {
  lender?.giveBack(bytes);
}

describe("read buffer", () => {
  test("reads on behind lent bytes while there is space, then elsewhere", () => {
    const buffer = new ReadBuffer(CAPACITY_BYTES, ROOM_BYTES_MIN);
    const first = readAndLend(buffer, 50, 1);
    const second = readAndLend(buffer, 20, 2);
    const third = readAndLend(buffer, 25, 3, 7);
    expect(second.bytes.buffer).toBe(first.bytes.buffer);
    expect(third.bytes.buffer).toBe(second.bytes.buffer);
    expect(buffer.target().buffer).not.toBe(third.bytes.buffer);
    expect([...buffer.pending]).toEqual(Array(7).fill(3));
    const fourth = readAndLend(buffer, 93, 4);
    for (const [chunk, value, bytes] of [
      [first, 1, 50],
      [second, 2, 20],
      [third, 3, 18],
    ] as const) {
      expect([...chunk.bytes]).toEqual(Array(bytes).fill(value));
    }
    expect([...fourth.bytes]).toEqual([...Array(7).fill(3), ...Array(93).fill(4)]);
  });

  test("begins at its start again once nothing is lent", () => {
    const buffer = new ReadBuffer(CAPACITY_BYTES, ROOM_BYTES_MIN);
    const chunk = readAndLend(buffer, 50, 1);
    giveBack(chunk);
    buffer.took(10);
    buffer.pass(4);
    expect(buffer.pending).toHaveLength(6);
    expect(buffer.target().buffer).toBe(chunk.bytes.buffer);
    expect(buffer.target().byteOffset).toBe(6);
  });

  test("keeps one piece of memory for later, whatever comes back", () => {
    const buffer = new ReadBuffer(CAPACITY_BYTES, ROOM_BYTES_MIN);
    let late: Chunk[] = [];
    for (const count of [9, 5, 9]) {
      late = Array.from({ length: count }, (_, i) => readAndLend(buffer, 90, i));
      expect(new Set(late.map(({ bytes }) => bytes.buffer)).size).toBe(count);
      expect(late.map(({ bytes }) => bytes[89])).toEqual([...late.keys()]);
      for (const chunk of late) giveBack(chunk);
    }
    const memories = new Set<ArrayBufferLike>();
    for (let i = 0; i < 50; i++) {
      const chunk = readAndLend(buffer, 90, i);
      memories.add(chunk.bytes.buffer);
      giveBack(chunk);
    }
    expect(memories.size).toBe(2);
    // One of the two was the last to come back.
    expect(late.filter(({ bytes }) => memories.has(bytes.buffer))).toHaveLength(1);
  });

  test("ignores a view that is given back a second time", () => {
    const buffer = new ReadBuffer(CAPACITY_BYTES, ROOM_BYTES_MIN);
    const first = readAndLend(buffer, 40, 1);
    const second = readAndLend(buffer, 50, 2);
    giveBack(first);
    giveBack(first);
    const third = readAndLend(buffer, 90, 3);
    expect(third.bytes.buffer).not.toBe(second.bytes.buffer);
    expect(buffer.target().buffer).not.toBe(second.bytes.buffer);
    giveBack(second);
    const fourth = readAndLend(buffer, 90, 4);
    giveBack(second);
    giveBack(third);
    const others = [readAndLend(buffer, 90, 5), readAndLend(buffer, 90, 6)];
    expect([...fourth.bytes]).toEqual(Array(90).fill(4));
    expect(others.map(({ bytes }) => bytes[0])).toEqual([5, 6]);
  });

  test("grows for what does not fit, and is its old size afterwards", () => {
    const buffer = new ReadBuffer(CAPACITY_BYTES, ROOM_BYTES_MIN);
    const expected: number[] = [];
    for (let value = 1; expected.length < 1_000; value++) {
      const target = buffer.target();
      expect(target.length).toBeGreaterThanOrEqual(ROOM_BYTES_MIN);
      target.fill(value);
      buffer.took(target.length);
      buffer.pass(0);
      expected.push(...Array(target.length).fill(value));
    }
    expect([...buffer.pending]).toEqual(expected);
    const ofLarge = [readAndLend(buffer, 1, 0)];
    while (buffer.target().buffer === ofLarge[0]?.bytes.buffer) {
      ofLarge.push(readAndLend(buffer, 30, 0));
    }
    expect(buffer.target().buffer.byteLength).toBe(CAPACITY_BYTES);
    for (const chunk of ofLarge) giveBack(chunk);
    for (let i = 0; i < 9; i++) {
      readAndLend(buffer, 90, 0);
      expect(buffer.target().buffer.byteLength).toBe(CAPACITY_BYTES);
    }
  });
});
