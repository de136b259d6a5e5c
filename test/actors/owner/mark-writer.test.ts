// Proves that heads are noted one at a time, that the last one is noted after a write under way, and
// that failures are told once until a write succeeds again.
import { expect, test } from "vitest";
import type { Head } from "../../../src/actors/journal/head-mark.ts";
import { MarkWriter } from "../../../src/actors/journal/mark-keeper.ts";
import { PserverError } from "../../../src/protocol/index.ts";

const head = (seq: number): Head => ({
  ...{ term: 1, generation: 1, seq, recordCrc: 9 },
  checksum: [seq, 1, 2],
});

/** Marks whose writes end when the test says so. */
function setUp(): {
  marks: MarkWriter;
  written: number[];
  told: string[];
  end: (error?: PserverError) => Promise<void>;
} {
  const written: number[] = [];
  const told: string[] = [];
  const ends: ((error: PserverError | undefined) => void)[] = [];
  const raise = ({ seq }: Head): Promise<void> => {
    written.push(seq);
    return new Promise((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  };
  const marks = new MarkWriter({ raise }, ({ code }) => told.push(code));
  const end = async (error?: PserverError): Promise<void> => {
    ends.shift()?.(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { marks, written, told, end };
}

test("a head is noted unless a write is under way", async () => {
  const { marks, written, end } = setUp();
  void marks.write(undefined);
  void marks.write(head(1));
  void marks.write(head(2));
  expect(written).toEqual([1]);
  await end();
  void marks.write(head(3));
  expect(written).toEqual([1, 3]);
});

test("the last head is noted after a write under way, and waited for", async () => {
  const { marks, written, end } = setUp();
  void marks.write(head(1));
  let isDone = false;
  const done = marks.finish(head(2)).then(() => {
    isDone = true;
  });
  expect(written).toEqual([1]);
  await end();
  expect([written, isDone]).toEqual([[1, 2], false]);
  await end();
  await done;
});

test("failures are reported once, and again after a success", async () => {
  const { marks, told, end } = setUp();
  const timeout = new PserverError("TIMEOUT", "the broker did not answer");
  for (const error of [timeout, timeout, undefined, timeout]) {
    void marks.write(head(1));
    await end(error);
  }
  expect(told).toEqual(["TIMEOUT", "TIMEOUT"]);
});
