// Proves that a client lets a bounded amount of work wait for its outcomes in a shard: bytes and blocks count, a record
// larger than the bound goes alone, and room comes back with the outcomes.
import { expect, test } from "vitest";
import { ShardWindow } from "../../../src/client/core/shard-window.ts";
import { type BlockUpdate, newUpdateCall } from "../../../src/client/core/update-call.ts";
import {
  BATCH_ENTRIES_MAX,
  UNSETTLED_BYTES_MAX,
  WINDOW_RECORDS,
} from "../../../src/protocol/limits.ts";

const MODE = { isDoneWhenStored: false, countsLate: false, countsPresent: false };

/** Opens as many of these updates as the window has room for; returns those. */
function fill(
  window: ShardWindow,
  blocks: number,
  dataBytes: number,
  count: number,
): BlockUpdate[] {
  const sizes = Array.from({ length: count }, () => ({
    shard: 0,
    blocks,
    dataBytes,
    namesVersion: false,
  }));
  for (const update of newUpdateCall(1, MODE, sizes).updates) window.waiting.append(update);
  const opened: BlockUpdate[] = [];
  for (let first = window.waiting.first; first !== undefined && window.hasRoom; ) {
    window.waiting.remove(first);
    window.open(first);
    opened.push(first);
    first = window.waiting.first;
  }
  return opened;
}

test.each([
  ["small records", 1, 0, WINDOW_RECORDS],
  ["records of 1 MiB", 1, 1024 * 1024, 7],
  ["full batches of the smallest blocks", BATCH_ENTRIES_MAX, 0, 2],
  ["records that are larger than the bound", 1, UNSETTLED_BYTES_MAX, 1],
])("a window takes some %s, and others once these are settled", (_what, blocks, bytes, taken) => {
  const window = new ShardWindow(0, WINDOW_RECORDS);
  const opened = fill(window, blocks, bytes, 2 * taken);
  expect(opened).toHaveLength(taken);
  for (const update of opened) window.close(update);
  expect(window.hasRoom).toBe(true);
  expect(fill(window, blocks, bytes, 0)).toHaveLength(taken);
});
