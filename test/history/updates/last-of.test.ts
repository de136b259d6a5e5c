// Proves that the last elements of any batches come, in their order, however they are cut.
import fc from "fast-check";
import { expect, test } from "vitest";
import { lastOf } from "../../../src/history/update-stream.ts";

test("the last elements come, in their order", async () => {
  const batches = fc.array(fc.array(fc.integer(), { maxLength: 9 }), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(batches, fc.integer({ min: 1, max: 40 }), async (given, count) => {
      const source = async function* () {
        yield* given;
      };
      const received: number[] = [];
      for await (const batch of lastOf(source(), count)) received.push(...batch);
      expect(received).toEqual(given.flat().slice(-count));
    }),
  );
});
