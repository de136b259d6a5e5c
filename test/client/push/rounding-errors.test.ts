// Proves that what rounding leaves out of a gradient in an encoding with scales is added to the next gradient of the
// same elements: for whole parameters, rows, single records and batches; once for each update, however often its
// message is made; and that it is forgotten when it must be. There is no connection: messages are made from what a
// call hands to its sender.
import { describe, expect, test } from "vitest";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import { addGradient, type Gradient } from "../../../src/client/push/block-updates.ts";
import { RoundingErrors } from "../../../src/client/push/rounding-errors.ts";
import { UpdateCollector } from "../../../src/client/push/update-collector.ts";
import type { GroupedEncoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { decodeGroups } from "../../../src/protocol/encoding/grouped.ts";
import {
  type Batch,
  decodeMessage,
  encodedBytes,
  JobSubjects,
  type ParameterInfo,
  parseBatch,
} from "../../../src/protocol/index.ts";
import { refusalOf } from "../../protocol/refusal.ts";
import { parameter } from "../joined-client.ts";

const HEAD = { session: 2, n: 9, done: 3, reply: "_INBOX_j.t.applied" };
const ENCODINGS = ["int8", "e3m0"] as const;

/** A parameter of rows of two elements in two blocks of one shard. */
function table(more: Partial<ParameterInfo> = {}, config: object = {}): ParameterInfo {
  const layout = { elements: 12, blockElements: 8, blocks: 2, firstShard: 0, shards: 1 };
  const settings = { learningRate: 1, sparse: true, ...config };
  return parameter("t", settings, { shape: [6, 2], layout, ...more });
}

function sourcesOf(
  info: ParameterInfo,
  given: Gradient,
  encoding: GroupedEncoding,
  errors: RoundingErrors | undefined,
  isSingle = false,
): UpdateSource[] {
  const operation = { op: "grad" } as const;
  const kind = { verb: "push", encoding, errors, operation, step: () => undefined } as const;
  const collector = new UpdateCollector(kind, {
    sender: { subjects: new JobSubjects("j"), trainer: "t" },
    payloadBytesMax: 1 << 20,
    separatesIntegers: false,
    isSingle,
  });
  const mode = { learningRate: undefined, encoding, errors, seen: new SeenVersions() };
  addGradient(collector, info, given, mode);
  return collector.finish();
}

function batchOf(source: UpdateSource | undefined): Batch {
  if (source === undefined) throw new Error("expected a batch");
  return parseBatch(decodeMessage(source.draft(HEAD, true)), 9);
}

/** The elements that the only batch of a call has, as they are folded. */
function sentBy(sources: readonly UpdateSource[], encoding: GroupedEncoding): number[] {
  const [batch] = sources;
  const [run] = batchOf(batch).runs;
  if (run === undefined) throw new Error("expected a run");
  const floats = new Float32Array(run.elements);
  decodeGroups(encoding, run.counts, { scales: run.scales, codes: run.values }, floats);
  return [...floats];
}

/** The elements as they are encoded and read. */
function rounded(encoding: GroupedEncoding, elements: Float32Array): Float32Array {
  const bytes = new Uint8Array(encodedBytes("float32", encoding, elements.length));
  encodeElements(encoding, elements, bytes);
  const read = new Float32Array(elements.length);
  decodeElements(encoding, bytes, read);
  return read;
}

const GRADIENT = Float32Array.from({ length: 12 }, (_, i) => 0.3 + ((i * 5) % 7) / 11);

describe.each(ENCODINGS)("in %s", (encoding) => {
  test("the sum of what is sent follows the sum of the gradients", () => {
    const errors = new RoundingErrors();
    const sums = new Float64Array(12);
    let without = 0;
    for (let round = 1; round <= 50; round++) {
      const sent = sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding);
      sent.forEach((x, i) => {
        sums[i] = (sums[i] as number) + x;
      });
      const lost = sums.map((sum, i) => Math.abs(sum - round * (GRADIENT[i] as number)));
      expect(Math.max(...lost)).toBeLessThan(0.6);
      const plain = sentBy(sourcesOf(table(), GRADIENT, encoding, undefined), encoding);
      without += (plain[1] as number) - (GRADIENT[1] as number);
    }
    if (encoding === "e3m0") expect(Math.abs(without)).toBeGreaterThan(1);
  });

  test.each([true, false])("a message made again is the same, single %j", (isSingle) => {
    const errors = new RoundingErrors();
    for (let round = 0; round < 3; round++) {
      const before = errors.find(table())?.slice() ?? new Float32Array(12);
      for (const source of sourcesOf(table(), GRADIENT, encoding, errors, isSingle)) {
        const first = decodeMessage(source.draft(HEAD, true)).data.slice();
        const again = decodeMessage(source.draft({ ...HEAD, session: 3, n: 1 }, false)).data;
        expect(again).toEqual(first);
      }
      const sum = GRADIENT.map((x, i) => x + (before[i] as number));
      const sent = Float32Array.of(
        ...rounded(encoding, sum.subarray(0, 8)),
        ...rounded(encoding, sum.subarray(8)),
      );
      expect(errors.find(table())).toEqual(sum.map((x, i) => x - (sent[i] as number)));
    }
  });

  test("a call whose message is never made leaves the errors as they were", () => {
    const errors = new RoundingErrors();
    sourcesOf(table(), GRADIENT, encoding, errors);
    expect(errors.find(table())).toBeUndefined();
  });

  test("a gradient of rows has and leaves the errors of these rows", () => {
    const errors = new RoundingErrors();
    sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding);
    const before = (errors.find(table()) as Float32Array).slice();
    const rows = [5, 1, 2];
    const values = Float32Array.of(1, 2, 3, 4, 5, 6);
    const sent = sentBy(sourcesOf(table(), { rows, values }, encoding, errors), encoding);
    // Rows 1 and 2 are an entry, row 5 is another.
    const first = Float32Array.of(3, 4, 5, 6).map((x, i) => x + (before[2 + i] as number));
    const second = Float32Array.of(1, 2).map((x, i) => x + (before[10 + i] as number));
    expect(sent).toEqual([...rounded(encoding, first), ...rounded(encoding, second)]);
    const after = before.slice();
    after.set(
      first.map((x, i) => x - (sent[i] as number)),
      2,
    );
    after.set(
      second.map((x, i) => x - (sent[4 + i] as number)),
      10,
    );
    expect(errors.find(table())).toEqual(after);
  });

  test("a parameter that is initialized again begins with none, and one of before has none", () => {
    const errors = new RoundingErrors();
    const [late] = sourcesOf(table(), GRADIENT, encoding, errors);
    sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding);
    const next = table({ epoch: 2 });
    const sent = sentBy(sourcesOf(next, GRADIENT, encoding, errors), encoding);
    const whole = [
      ...rounded(encoding, GRADIENT.subarray(0, 8)),
      ...rounded(encoding, GRADIENT.subarray(8)),
    ];
    expect(sent).toEqual(whole);
    const kept = errors.find(next)?.slice();
    expect(sentBy([late as UpdateSource], encoding)).toEqual(whole);
    expect(errors.find(next)).toEqual(kept);
    expect(errors.find(table())).toBeUndefined();
  });

  test("after all are forgotten the next gradient is as the first", () => {
    const errors = new RoundingErrors();
    const first = sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding);
    const second = sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding);
    errors.clear();
    expect(sentBy(sourcesOf(table(), GRADIENT, encoding, errors), encoding)).toEqual(first);
    expect(second).not.toEqual(first);
  });

  test("the norm is that of what is sent, with the errors", () => {
    const errors = new RoundingErrors();
    const info = table({}, { clipNorm: 1 });
    for (let round = 0; round < 3; round++) {
      const sources = sourcesOf(info, GRADIENT, encoding, errors);
      const sent = sentBy(sources, encoding);
      const [run] = batchOf(sources[0]).runs;
      for (const norm of run?.norms ?? []) expect(norm).toBeCloseTo(Math.hypot(...sent), 6);
    }
    const rows = { rows: [0, 5], values: Float32Array.of(1, 2, 3, 4) };
    const sources = sourcesOf(info, rows, encoding, errors);
    const sent = sentBy(sources, encoding);
    expect(batchOf(sources[0]).runs[0]?.norms?.[1]).toBeCloseTo(Math.hypot(...sent), 6);
  });

  test("a gradient that overflows with its errors is refused, and leaves them", () => {
    const largest = 2 ** 128 - 2 ** 104;
    const errors = new RoundingErrors();
    // Rounding leaves some 2^120 out of the second element, beside the largest number.
    const large = GRADIENT.with(0, largest).with(1, 0.6 * largest);
    sentBy(sourcesOf(table(), large, encoding, errors), encoding);
    const before = (errors.find(table()) as Float32Array).slice();
    const sign = Math.sign(before[1] as number);
    const refusal = refusalOf(() => {
      sourcesOf(table(), GRADIENT.with(1, sign * largest), encoding, errors);
    });
    expect(refusal).toMatchObject({ code: "NON_FINITE", details: { index: 1 } });
    expect(refusal.message).toMatch(/received -?Infinity as element 1/);
    expect(errors.find(table())).toEqual(before);
  });
});
