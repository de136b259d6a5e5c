// Proves that watermarks are noted one at a time, that the last one is noted after a write under way, and
// that failures are told once until a write succeeds again.
import { expect, test } from "vitest";
import type { FoldProgress } from "../../../src/actors/journal/watermark.ts";
import { WatermarkWriter } from "../../../src/actors/journal/watermark-keeper.ts";
import { PserverError } from "../../../src/protocol/index.ts";

const progress = (seq: number): FoldProgress => ({
  ...{ term: 1, generation: 1, seq, recordCrc: 9 },
  checksum: [seq, 1, 2],
});

/** Marks whose writes end when the test says so. */
function setUp(): {
  writer: WatermarkWriter;
  written: number[];
  told: string[];
  end: (error?: PserverError) => Promise<void>;
} {
  const written: number[] = [];
  const told: string[] = [];
  const ends: ((error: PserverError | undefined) => void)[] = [];
  const raise = ({ seq }: FoldProgress): Promise<void> => {
    written.push(seq);
    return new Promise((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  };
  const writer = new WatermarkWriter({ raise }, ({ code }) => told.push(code));
  const end = async (error?: PserverError): Promise<void> => {
    ends.shift()?.(error);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { writer, written, told, end };
}

test("a watermark is noted unless a write is under way", async () => {
  const { writer, written, end } = setUp();
  void writer.write(undefined);
  void writer.write(progress(1));
  void writer.write(progress(2));
  expect(written).toEqual([1]);
  await end();
  void writer.write(progress(3));
  expect(written).toEqual([1, 3]);
});

test("the last progress is noted after a write under way, and waited for", async () => {
  const { writer, written, end } = setUp();
  void writer.write(progress(1));
  let isDone = false;
  const done = writer.writeNext(progress(2)).then(() => {
    isDone = true;
  });
  expect(written).toEqual([1]);
  await end();
  expect([written, isDone]).toEqual([[1, 2], false]);
  await end();
  await done;
});

test("failures are reported once, and again after a success", async () => {
  const { writer, told, end } = setUp();
  const timeout = new PserverError("TIMEOUT", "the broker did not answer");
  for (const error of [timeout, timeout, undefined, timeout]) {
    void writer.write(progress(1));
    await end(error);
  }
  expect(told).toEqual(["TIMEOUT", "TIMEOUT"]);
});
