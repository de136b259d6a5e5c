// Proves what a read of a whole parameter makes of an earlier result: unchanged blocks keep their values, a
// parameter that has not changed is the same result, and earlier results are never written.
import { expect, test } from "vitest";
import { PulledTensor, WholeRead } from "../../../src/client/pull/puller.ts";
import { ReceivedValues } from "../../../src/client/pull/received-values.ts";

import { toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf, type Encoding } from "../../../src/protocol/dtypes.ts";

import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";

/** A parameter of two blocks of two elements each. */
function parameter(epoch = 1): ParameterInfo {
  const layout = { elements: 4, blockElements: 2, blocks: 2, firstShard: 0, shards: 4 };
  return {
    name: "w",
    dtype: "float32",
    shape: [4],
    config: toConfig(),
    epoch,
    ready: true,
    layout,
    firstNumber: 1,
  };
}

/** Gives a block its values; undefined for those that the reader has. */
function give(read: WholeRead, block: number, version: number, ...values: number[]): void {
  const bytes = bytesOf(Float32Array.from(values));
  const received = values.length === 0 ? undefined : new ReceivedValues(bytes);
  read.take(block, received, 0, { version, generation: 1 });
}

function first(encoding?: Encoding): PulledTensor {
  const read = new WholeRead(parameter(), {});
  give(read, 0, 3, 1, 2);
  give(read, 1, 5, 3, 4);
  const { data } = read.result();
  const blocks = [3, 5].map((version) => ({ version, generation: 1 }));
  const tensor = { name: "w", dtype: "float32", shape: [4], data } as const;
  return encoding === undefined
    ? (read.result() as PulledTensor)
    : new PulledTensor(tensor, { epoch: 1, encoding, blocks });
}

test("the result has the highest version, and the states that the next read names", () => {
  const known = first();
  expect(known).toMatchObject({ name: "w", version: 5, data: Float32Array.of(1, 2, 3, 4) });
  const next = new WholeRead(parameter(), { known });
  expect([0, 1].map((block) => next.knownOf(block))).toEqual([
    { version: 3, generation: 1 },
    { version: 5, generation: 1 },
  ]);
});

test("of an unchanged parameter it is the known result", () => {
  const known = first();
  const read = new WholeRead(parameter(), { known });
  give(read, 1, 5);
  give(read, 0, 3);
  expect(read.result()).toBe(known);
});

test.each([
  ["first", 0],
  ["last", 1],
])("where the %s block has changed it is a new one, and the known one stays", (_what, block) => {
  const known = first();
  const read = new WholeRead(parameter(), { known });
  give(read, block, 6, 8, 9);
  give(read, 1 - block, known.version);
  const result = read.result();
  expect(result.data).toEqual(Float32Array.of(...(block === 0 ? [8, 9, 3, 4] : [1, 2, 8, 9])));
  expect(result.version).toBe(6);
  expect(known.data).toEqual(Float32Array.of(1, 2, 3, 4));
});

test("in an array of the caller unchanged blocks are copied, or are there already", () => {
  const known = first();
  const into = new Float32Array(4);
  const copied = new WholeRead(parameter(), { known, into });
  give(copied, 0, 3);
  give(copied, 1, 5);
  expect(copied.result().data).toBe(into);
  expect(into).toEqual(known.data);
  const inPlace = new WholeRead(parameter(), { known, into: known.data });
  give(inPlace, 0, 3);
  give(inPlace, 1, 6, 8, 9);
  expect(inPlace.result().data).toBe(known.data);
  expect(known.data).toEqual(Float32Array.of(1, 2, 8, 9));
});

test("results of another epoch or encoding, and copies of results, do not count", () => {
  const copy = { ...first() };
  for (const read of [
    new WholeRead(parameter(2), { known: first() }),
    new WholeRead(parameter(), { known: first("float16") }),
    new WholeRead(parameter(), { known: first(), encoding: "float16" }),
    new WholeRead(parameter(), { known: copy }),
  ]) {
    expect([0, 1].map((block) => read.knownOf(block))).toEqual([undefined, undefined]);
  }
});
