// Proves what becomes of a call when its record is a batch: each block counts, a rejection names the
// block that the host names, and an error of the call lists the blocks of the record.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { ack, answer, applied, deadline, header, setUp, update, watch } from "./outbox-rig.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A record of three blocks. */
function batch(): UpdateSource {
  const blocks = [0, 1, 2].map((index) => ({ parameter: "p", index }));
  return { ...update(0), blocks: 3, topic: { kind: "blocks", blocks } };
}

test("blocks that came too late for their step are counted one by one", async () => {
  const { wire, sender } = setUp();
  const sent = sender.send([batch(), update(0, 7)], { deadline: deadline(), countsLate: true });
  answer(wire, [{ n: 1, seq: 1, version: 0, code: "LATE", message: "late" }, applied(2)]);
  expect(await sent).toMatchObject({ late: 3 });
});

test("a rejection names the block of the entry with which its text begins", async () => {
  const { wire, sender } = setUp();
  const seen = watch(sender.send([batch()], { deadline: deadline() }));
  const message = 'entry 1, "p" block 1: expected 2 elements; received 1';
  answer(wire, [{ n: 1, seq: 1, version: 0, code: "BAD_LENGTH", message }]);
  await vi.advanceTimersByTimeAsync(0);
  expect(seen.error).toMatchObject({ code: "BAD_LENGTH", details: { parameter: "p", block: 1 } });
  expect(seen.error?.message).toBe('p block 1: "p" block 1: expected 2 elements; received 1');
});

test("a rejection of the whole record names its first block and how many there are", async () => {
  const { wire, sender } = setUp();
  const seen = watch(sender.send([batch()], { deadline: deadline() }));
  answer(wire, [{ n: 1, seq: 1, version: 0, code: "QUOTA", message: "too many" }]);
  await vi.advanceTimersByTimeAsync(0);
  expect(seen.error?.message).toBe("p block 0 and 2 others of its record: too many");
  expect(seen.error?.details).not.toHaveProperty("block");
});

test("a call that ends without its outcome lists every block", async () => {
  const { wire, sender } = setUp();
  const seen = watch(sender.send([batch()], { deadline: deadline(500) }));
  ack(wire, wire.published[0], 4);
  await vi.advanceTimersByTimeAsync(600);
  expect(seen.error?.code).toBe("OUTCOME_UNKNOWN");
  expect(seen.error?.message).toMatch(/ 3 block updates, the first p block 0 and 2 others/);
  expect(seen.error?.details).toMatchObject({
    unknown: [0, 1, 2].map((index) => ({ parameter: "p", index, shard: 0, n: 1 })),
  });
});

test("is sent again without the versions it was made from, all of them", async () => {
  const { wire, sender } = setUp();
  const named: boolean[] = [];
  const draft: UpdateSource["draft"] = (numbers, namesVersion) => {
    named.push(namesVersion);
    return update(0).draft(numbers, namesVersion);
  };
  const sent = sender.send([{ ...batch(), namesVersion: true, draft }], { deadline: deadline() });
  answer(wire, [{ n: 1, seq: 1, version: 0, code: "BAD_VALUE", message: "seen" }]);
  expect(header(wire.published[1])).toMatchObject({ n: 2 });
  answer(wire, [applied(2)]);
  expect(await sent).toMatchObject({ late: 0 });
  expect(named).toEqual([true, false]);
});
