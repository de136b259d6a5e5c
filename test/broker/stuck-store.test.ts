// Proves which lines of nats-server's log say that only a restart repairs the store.
import { expect, test } from "vitest";
import { StuckStore } from "../../src/broker/start-broker.ts";

const REFUSED =
  "[7] 2026/11/22 11:02:43 [ERR] JetStream failed to store a msg on stream '$G > PS_j_0': ";
const FULL = `${REFUSED}write /data/5.blk: no space left on device`;
const NO_CACHE = `${REFUSED}no message cache`;

function told(...lines: string[]): boolean[] {
  const store = new StuckStore();
  return lines.map((line) => store.isReportedBy(line));
}

test("a store is stuck once it finds nothing to write behind, after the disk was full", () => {
  expect(told(FULL, FULL, NO_CACHE, NO_CACHE, FULL)).toEqual([false, false, true, true, false]);
});

test("without a full disk before it may have other causes, which a restart does not repair", () => {
  expect(told(NO_CACHE, NO_CACHE)).toEqual([false, false]);
});

test("other lines do not count", () => {
  const other = "[7] 2026/11/22 11:02:43 [WRN] Filestore [no space left] no message cache";
  expect(told(other, FULL, other, `${REFUSED}maximum bytes exceeded`)).toEqual(
    Array.from({ length: 4 }, () => false),
  );
});
