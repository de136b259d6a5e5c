// Proves how blocks are divided among requests: each is in one; small ones of a shard go together within the
// limits of a message and of a chunk of a reply; large ones and those without company go alone.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PlannedRequest, planRequests } from "../../../src/client/pull/block-reader.ts";
import { type PendingBlock, pendingBlocks } from "../../../src/client/pull/read-requests.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
} from "../../../src/protocol/limits.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";
import { encodeBatchRead } from "../../../src/protocol/messages/reads.ts";

const PAYLOAD = 1024 * 1024;

interface Wanted {
  readonly name?: string;
  readonly shard?: number;
  readonly bytes?: number;
  readonly isKnown?: boolean;
  /** Rows asked for; 0 for the whole block. */
  readonly rows?: number;
}

/** A block of float32 elements, in rows of one. */
function block({
  name = "w",
  shard = 0,
  bytes = 64,
  isKnown = false,
  rows = 0,
}: Wanted): PendingBlock {
  const count = 1_000_000;
  const layout = { elements: count, blockElements: count, blocks: 1, firstShard: 0, shards: 16 };
  const info: ParameterInfo = {
    ...{
      name,
      dtype: "float32",
      shape: [count],
      config: toConfig(),
      epoch: 1,
      ready: true,
      layout,
    },
  };
  const index = rows === 0 ? undefined : { rows: Uint32Array.from({ length: rows }, (_, i) => i) };
  const read = {
    place: { index: 0, shard, start: 0, count },
    elements: bytes / 4,
    index,
    known: isKnown ? { version: 1, generation: 1 } : undefined,
    take: () => undefined,
  };
  const [only] = pendingBlocks({ info, replacedBy: undefined }, [read], undefined);
  return only as PendingBlock;
}

const blocksOf = (request: PlannedRequest): readonly PendingBlock[] =>
  request.kind === "single" ? [request.block] : request.blocks;

describe("blocks", () => {
  test("are each in one request, which keeps its limits", () => {
    const wanted = fc.record({
      name: fc.constantFrom("a", "b", "ü".repeat(60)),
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
        const blocks = list.map(block);
        const requests = planRequests(blocks, 256 * 1024);
        expect(new Set(requests.flatMap(blocksOf))).toEqual(new Set(blocks));
        expect(requests.flatMap(blocksOf)).toHaveLength(blocks.length);
        for (const request of requests) {
          if (request.kind === "single") continue;
          expect(request.blocks.every(({ read }) => read.place.shard === request.shard)).toBe(true);
          const bytes = request.blocks.reduce((sum, each) => sum + each.bytes, 0);
          expect(request.bytes).toBe(bytes);
          if (request.blocks.length === 1) expect(request.blocks[0]?.read.known).toBeDefined();
          else expect(bytes).toBeLessThanOrEqual(4 * BATCH_BYTES);
          const entries = request.blocks.map(({ parameter, read, rows }) => {
            const { name: parameterName, epoch } = parameter.info;
            const entry = { epoch, block: 0, index: read.index, rows, have: 2 ** 53 - 1 };
            return { parameter: parameterName, ...entry };
          });
          const header = { generation: 2 ** 53 - 1, seq: 2 ** 53 - 1, waitMs: 900 };
          expect(encodeBatchRead(header, entries).length).toBeLessThanOrEqual(256 * 1024);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("that are large go alone, and do not separate the small ones", () => {
    const large = block({ bytes: BATCH_ENTRY_BYTES_MAX });
    const requests = planRequests([block({}), large, block({}), block({ shard: 1 })], PAYLOAD);
    expect(requests.map((request) => [request.kind, blocksOf(request).length])).toEqual([
      ["batch", 2],
      ["single", 1],
      ["single", 1],
    ]);
  });

  test("that the reader has go into a batch, whatever their size and number", () => {
    const known = block({ bytes: 4 * BATCH_BYTES, isKnown: true });
    expect(planRequests([known], PAYLOAD).map(({ kind }) => kind)).toEqual(["batch"]);
    const four = Array.from({ length: 5 }, () => block({ bytes: BATCH_BYTES, isKnown: true }));
    expect(planRequests(four, PAYLOAD).map((request) => blocksOf(request).length)).toEqual([4, 1]);
  });

  test.each([
    ["bytes of values", { bytes: BATCH_BYTES / 8 }, 8],
    ["entries", { bytes: 4 }, BATCH_ENTRIES_MAX],
    ["bytes of names", { bytes: 4, name: "x".repeat(200) }, 4_096],
  ])("begin another request at the limit of %s", (_what, wanted, limit) => {
    const shared = Array.from({ length: limit }, () => block(wanted));
    const [first = shared[0], ...rest] = shared;
    const same = rest.map((each) => ({ ...each, parameter: (first as PendingBlock).parameter }));
    const blocks = [first as PendingBlock, ...same];
    expect(planRequests(blocks, 8 * PAYLOAD)).toHaveLength(1);
    expect(planRequests([...blocks, block(wanted)], 8 * PAYLOAD)).toHaveLength(2);
  });

  test("of many parameters keep the limit of a header", () => {
    const blocks = Array.from({ length: 2_000 }, (_, i) =>
      block({ name: `${i}`.padEnd(200, "x") }),
    );
    const requests = planRequests(blocks, 8 * PAYLOAD);
    expect(requests.length).toBeGreaterThan(2);
    for (const request of requests) {
      expect(blocksOf(request).length * 200).toBeLessThan(BATCH_HEAD_BYTES_MAX);
    }
  });
});
