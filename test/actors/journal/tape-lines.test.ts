import fc from "fast-check";
import { expect, test } from "vitest";
import type { UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import { decodeTape, tapeSpan } from "../../../src/actors/journal/tape/tape-decoder.ts";
import { TapeEncoder } from "../../../src/actors/journal/tape/tape-encoder.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";
import { asKept, recordsOfShard, SHARD } from "./arbitrary-events.ts";

// Proves that updates come out of the lines of a tape as they went in, however they are divided into
// messages; that every flipped bit of a message is found; and that junk with a right checksum ends in
// BAD_MESSAGE, never in anything else.

/** The messages of records, one for each `size` of them. */
function messagesOf(records: readonly (readonly UpdateEvent[])[], size: number): Uint8Array[] {
  const encoder = new TapeEncoder(2, 0);
  const messages: Uint8Array[] = [];
  const take = (): void => {
    if (encoder.isEmpty) return;
    const { fields, data } = encoder.take();
    messages.push(encodeMessage(fields, data));
    encoder.clear();
  };
  records.forEach((events, i) => {
    encoder.add(events, true);
    if ((i + 1) % size === 0) take();
  });
  take();
  return messages;
}

test("updates come out as they went in", () => {
  fc.assert(
    fc.property(recordsOfShard, fc.integer({ min: 1, max: 5 }), (records, size) => {
      const read = messagesOf(records, size).flatMap((bytes) => decodeTape(bytes, SHARD).events);
      expect(read.map(asKept)).toEqual(records.flat().map(asKept));
    }),
  );
});

test("times are cut off at microseconds, not rounded up to a later millisecond", () => {
  const [[events] = []] = fc.sample(recordsOfShard, { numRuns: 1, seed: 11 });
  const times = [1_764_106_891_490.9998, 1_764_106_891_491.9995];
  const records = times.map((timeMs, i) =>
    (events ?? []).map((event) => ({ ...event, timeMs, seq: i + 1 })),
  );
  const read = messagesOf(records, 2).flatMap((bytes) => decodeTape(bytes, SHARD).events);
  expect(new Set(read.map(({ timeMs }) => timeMs))).toEqual(
    new Set([1_764_106_891_490.999, 1_764_106_891_491.999]),
  );
});

test("a message says which records it has", () => {
  fc.assert(
    fc.property(recordsOfShard, (records) => {
      const spans = messagesOf(records, 1).map(tapeSpan);
      const seqs = records.map(([first]) => first?.seq ?? 0);
      expect(spans).toEqual(seqs.map((seq) => ({ generation: 2, from: seq, to: seq })));
    }),
  );
});

test("a record whose entries are in two messages is whole after the second", () => {
  const [record = []] = fc.sample(
    recordsOfShard
      .map((records) => records.find((events) => events.length > 2) ?? [])
      .filter((events) => events.length > 2),
    { numRuns: 1, seed: 7 },
  );
  const encoder = new TapeEncoder(2, 4);
  encoder.add(record.slice(0, 1), false);
  const first = encoder.take();
  expect(first.fields.to).toBe(4);
  const head = decodeTape(encodeMessage(first.fields, first.data), SHARD).events;
  encoder.clear();
  encoder.add(record.slice(1), true);
  const second = encoder.take();
  expect(second.fields.to).toBe(record[0]?.seq);
  const rest = decodeTape(encodeMessage(second.fields, second.data), SHARD).events;
  expect([...head, ...rest].map(asKept)).toEqual(record.map(asKept));
});

test("every flipped byte is found", () => {
  const [records = []] = fc.sample(recordsOfShard, { numRuns: 1, seed: 11 });
  const [bytes = new Uint8Array()] = messagesOf(records, 100);
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    expect(() => decodeTape(flipped, SHARD)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^BAD_(CHECKSUM|MESSAGE|VERSION)$/) }),
    );
  }
});

test("junk in a sound envelope is malformed", () => {
  const fields = { format: 1, generation: 1, from: 1, to: 1, timeUs: 0, names: ["w"] };
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 60 }), (data) => {
      try {
        decodeTape(encodeMessage(fields, data), SHARD);
      } catch (error) {
        expect(error).toMatchObject({ code: "BAD_MESSAGE" });
      }
    }),
  );
});

test("lines of a later format are refused", () => {
  const fields = { format: 2, generation: 1, from: 1, to: 1, timeUs: 0, names: [] };
  const later = expect.objectContaining({ code: "BAD_VERSION" });
  expect(() => decodeTape(encodeMessage(fields, new Uint8Array(0)), SHARD)).toThrow(later);
});
