import { expect, test } from "vitest";
import { StorageQueries } from "../../../src/actors/journal/streams.ts";

// Proves that many who ask a broker for space are answered right with few questions, one at a time.

/** A broker with space for so many bytes, and the questions that it was asked. */
function brokerWith(spaceBytes: number) {
  const asked: number[] = [];
  let under = 0;
  const has = async (bytes: number): Promise<boolean> => {
    asked.push(bytes);
    under += 1;
    expect(under).toBe(1);
    await Promise.resolve();
    under -= 1;
    return bytes <= spaceBytes;
  };
  return { asked, has };
}

test("a request during a question to the broker is answered by the next question", async () => {
  const { asked, has } = brokerWith(1_000);
  const queries = new StorageQueries(has);
  const answers = await Promise.all([10, 20, 900, 30, 1_000].map((bytes) => queries.fits(bytes)));
  expect(answers).toEqual([true, true, true, true, true]);
  expect(asked).toEqual([10, 1_000]);
});

test("a request for less than an amount that does not fit gets an answer of its own", async () => {
  const { asked, has } = brokerWith(100);
  const queries = new StorageQueries(has);
  const answers = await Promise.all([1, 500, 100, 101, 500, 7].map((bytes) => queries.fits(bytes)));
  expect(answers).toEqual([true, false, true, false, false, true]);
  expect(asked).toEqual([1, 500, 101, 100]);
});

test("every later request asks the broker anew", async () => {
  const { asked, has } = brokerWith(100);
  const queries = new StorageQueries(has);
  expect(await queries.fits(50)).toBe(true);
  expect(await queries.fits(50)).toBe(true);
  expect(asked).toEqual([50, 50]);
});

test("an error fails all requests that waited for the answer, and no later one", async () => {
  let broken = true;
  const queries = new StorageQueries(async () => {
    if (broken) throw new Error("no answer");
    return true;
  });
  const failed = await Promise.allSettled([queries.fits(1), queries.fits(2), queries.fits(3)]);
  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  broken = false;
  expect(await queries.fits(1)).toBe(true);
});
