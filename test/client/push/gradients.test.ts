// Proves which gradients of rows are refused, and what a gradient's records say of the versions it was made
// from: those that were read when the call was made, of each block its own. There is no connection: the
// records are made from what a call hands to its sender.
import { describe, expect, test } from "vitest";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { addGradient, type Gradient } from "../../../src/client/push/block-updates.ts";
import { UpdateCollector } from "../../../src/client/push/update-collector.ts";
import {
  decodeMessage,
  JobSubjects,
  type ParameterConfigInput,
  type ParameterInfo,
  parseBatch,
} from "../../../src/protocol/index.ts";
import { parameter } from "../joined-client.ts";

const SUBJECTS = new JobSubjects("j");
const HEAD = { session: 2, n: 9, done: 3, reply: "_INBOX_j.t.applied" };
const OPTIONS = {
  sender: { subjects: SUBJECTS, trainer: "t" },
  payloadBytesMax: 1 << 20,
  separatesIntegers: false,
};

/** A parameter of two blocks in one shard. */
function halves(config?: ParameterConfigInput): ParameterInfo {
  const layout = { elements: 4, blockElements: 2, blocks: 2, firstShard: 0, shards: 1 };
  return parameter("w", config, { shape: [2, 2], layout });
}

function gradientOf(
  info: ParameterInfo,
  seen: SeenVersions,
  given: Gradient = Float32Array.of(1, 2, 3, 4),
  isSingle = true,
): UpdateSource[] {
  const operation = { op: "grad" } as const;
  const kind = { verb: "push", operation, step: () => undefined } as const;
  const collector = new UpdateCollector(kind, { ...OPTIONS, isSingle });
  addGradient(collector, info, given, { learningRate: undefined, encoding: undefined, seen });
  return collector.finish();
}

/** The version that each record names as its block's, undefined for none. */
function named(sources: readonly UpdateSource[], namesVersion?: boolean): unknown[] {
  return sources.map((source) => {
    const bytes = source.draft(HEAD, namesVersion ?? source.namesVersion);
    return decodeMessage(bytes).fields["seen"];
  });
}

/** The versions that a batch names of its blocks, 0 for none; undefined if it names none. */
function namedInBatch(seen: SeenVersions, namesVersion: boolean): unknown {
  const [batch, ...others] = gradientOf(halves(), seen, undefined, false);
  if (batch === undefined || others.length > 0) throw new Error("expected one batch");
  const [run] = parseBatch(decodeMessage(batch.draft(HEAD, namesVersion)), 2).runs;
  return run?.seen && [...run.seen];
}

describe("a gradient names of each block", () => {
  test("the version that was read when the call was made, whatever is read while its records wait", () => {
    const seen = new SeenVersions();
    seen.note(halves().firstNumber + 0, 7);
    const sources = gradientOf(halves(), seen);
    seen.note(halves().firstNumber + 0, 8);
    seen.note(halves().firstNumber + 1, 9);
    expect(named(sources)).toEqual([7, undefined]);
    expect(sources.map(({ namesVersion }) => namesVersion)).toEqual([true, false]);
  });

  test("its own version, and none of a block that was not read", () => {
    const seen = new SeenVersions();
    seen.note(halves().firstNumber + 1, 5);
    const sources = gradientOf(halves(), seen);
    expect(sources.map(({ namesVersion }) => namesVersion)).toEqual([false, true]);
    expect(named(sources)).toEqual([undefined, 5]);
    expect(namedInBatch(seen, true)).toEqual([0, 5]);
  });

  test("none once it is to name none, alone and in a batch", () => {
    const seen = new SeenVersions();
    for (const block of [0, 1]) seen.note(halves().firstNumber + block, 5);
    const sources = gradientOf(halves(), seen);
    expect(named(sources, false)).toEqual([undefined, undefined]);
    expect(namedInBatch(seen, false)).toBeUndefined();
  });
});

describe("a gradient of some rows", () => {
  const rows = { rows: [1], values: Float32Array.of(1, 2) };

  test("is refused where the parameter is not sparse", () => {
    expect(() => gradientOf(halves(), new SeenVersions(), rows)).toThrow(
      expect.objectContaining({
        code: "UNSUPPORTED",
        details: expect.objectContaining({ parameter: "w" }),
      }),
    );
  });

  test("becomes a part of the blocks that have them where it is", () => {
    const sparse = halves({ learningRate: 1, sparse: true });
    const sources = gradientOf(sparse, new SeenVersions(), rows);
    expect(sources.map(({ topic }) => topic)).toMatchObject([{ blocks: [{ index: 1 }] }]);
  });
});
