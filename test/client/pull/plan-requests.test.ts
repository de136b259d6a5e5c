// Proves how blocks are divided among requests: each is in one; small ones of a shard go together within the
// limits of a message and of a chunk of a reply; large ones and those without company go alone.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ParameterRead,
  PendingReads,
  type PlannedRequest,
  planRequests,
} from "../../../src/client/pull/read-plan.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
} from "../../../src/protocol/limits.ts";
import { encodeBatchRead } from "../../../src/protocol/messages/batch-reads.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";

const PAYLOAD = 1024 * 1024;

interface Wanted {
  readonly shard?: number;
  readonly bytes?: number;
  readonly isKnown?: boolean;
  /** Rows asked for; 0 for the whole block. */
  readonly rows?: number;
}

/** A read of one block of float32 elements, in rows of one. */
function read({ shard = 0, bytes = 64, isKnown = false, rows = 0 }: Wanted): ParameterRead {
  const count = 2_000_000;
  const layout = {
    elements: count,
    blockElements: count,
    blocks: 1,
    firstShard: shard,
    shards: 16,
  };
  const declaration = { name: "w", dtype: "float32", shape: [count], config: toConfig() } as const;
  const info: ParameterInfo = { ...declaration, epoch: 1, ready: true, layout, firstNumber: 7 };
  const part = rows === 0 ? undefined : { rows: Uint32Array.from({ length: rows }, (_, i) => i) };
  return {
    ...{ info, entries: 1 },
    blockOf: () => 0,
    partOf: () => part,
    elementsOf: () => bytes / 4,
    knownOf: () => (isKnown ? { version: 2 ** 53 - 1, generation: 1 } : undefined),
    take: () => undefined,
  };
}

const pendingOf = (reads: readonly ParameterRead[]): PendingReads =>
  new PendingReads(reads, undefined);

/** Places of the reads that a request is for. */
const placesOf = (request: PlannedRequest): readonly number[] =>
  request.kind === "single" ? [request.place] : request.places;

const lengthsOf = (requests: readonly PlannedRequest[]): number[] =>
  requests.map((request) => placesOf(request).length);

describe("blocks", () => {
  test("are each in one request, which keeps its limits", () => {
    const wanted = fc.record({
      shard: fc.nat(2),
      bytes: fc.oneof(
        fc.constantFrom(4, 64, 262_144, 4_194_304),
        fc.nat(100_000).map((n) => n * 4),
      ),
      isKnown: fc.boolean(),
      rows: fc.constantFrom(0, 0, 5, 30_000),
    });
    fc.assert(
      fc.property(fc.array(wanted, { maxLength: 60 }), (list) => {
        const pending = pendingOf(list.map(read));
        const requests = planRequests(pending, 256 * 1024);
        const places = requests.flatMap(placesOf);
        expect([...places].sort((a, b) => a - b)).toEqual(list.map((_, place) => place));
        for (const request of requests) {
          if (request.kind === "single") continue;
          const own = request.places.map((place) => list[place] as Wanted);
          expect(own.every(({ shard }) => shard === request.shard)).toBe(true);
          const bytes = own.reduce((sum, each) => sum + (each.bytes ?? 0), 0);
          expect(request.bytes).toBe(bytes);
          if (own.length === 1) expect(own[0]?.isKnown).toBe(true);
          else expect(bytes).toBeLessThanOrEqual(4 * BATCH_BYTES);
          const header = { generation: 1, seq: 2 ** 53 - 1, waitMs: 900 };
          const message = encodeBatchRead(header, request.wanted(pending, 1));
          expect(message.length).toBeLessThanOrEqual(256 * 1024);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("that are large go alone, and do not separate the small ones", () => {
    const large = read({ bytes: BATCH_ENTRY_BYTES_MAX });
    const pending = pendingOf([read({}), large, read({}), read({ shard: 1 })]);
    const requests = planRequests(pending, PAYLOAD);
    expect(requests.map((request) => [request.kind, placesOf(request).length])).toEqual([
      ["batch", 2],
      ["single", 1],
      ["single", 1],
    ]);
  });

  test("that the reader has go into a batch, whatever their size and number", () => {
    const known = read({ bytes: 4 * BATCH_BYTES, isKnown: true });
    expect(planRequests(pendingOf([known]), PAYLOAD).map(({ kind }) => kind)).toEqual(["batch"]);
    const five = Array.from({ length: 5 }, () => read({ bytes: BATCH_BYTES, isKnown: true }));
    expect(lengthsOf(planRequests(pendingOf(five), PAYLOAD))).toEqual([4, 1]);
  });

  test.each([
    ["bytes of values", { bytes: BATCH_BYTES / 8 }, 8],
    ["entries", { bytes: 4 }, BATCH_ENTRIES_MAX],
  ])("begin another request at the limit of %s", (_what, wanted, limit) => {
    const reads = Array.from({ length: limit }, () => read(wanted));
    expect(planRequests(pendingOf(reads), 8 * PAYLOAD)).toHaveLength(1);
    expect(planRequests(pendingOf([...reads, read(wanted)]), 8 * PAYLOAD)).toHaveLength(2);
  });
});
