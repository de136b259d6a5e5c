// Proves the envelope: what is encoded comes back, the tensor bytes untouched and in place; one
// changed bit, one lost byte or one more is always found out, tried for every bit and length of a
// message; and nothing is encoded that a reader would see otherwise.
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checksum } from "../../src/protocol/checksum/checksum.ts";
import {
  decodeMessage,
  draftMessage,
  encodeMessage,
  type Fields,
  isSealed,
  packValue,
  readCrc,
  sealMessage,
  unpackValue,
} from "../../src/protocol/codec.ts";
import { PROTOCOL_VERSION } from "../../src/protocol/limits.ts";
import { codeOf, refusalOf } from "./refusal.ts";

const FIELDS = { session: 3, n: 1, done: 0, reply: "_INBOX_j.t.x", epoch: 300, norm: 1.5 };
const DATA = Uint8Array.from({ length: 40 }, (_, i) => 255 - i);

const key = fc
  .string({ unit: "grapheme", maxLength: 40 })
  .filter((text) => !["__proto__", "crc", "v", "data"].includes(text));

/** Any value that a message can carry. −0 travels as 0, and nothing as nil. */
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 8, withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.double().map((number) => (number === 0 ? 0 : number)),
    fc.maxSafeInteger(),
    fc.string({ unit: "grapheme", maxLength: 80 }),
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie("value"), { maxLength: 20 }),
    fc.dictionary(key, tie("value"), { maxKeys: 20, noNullPrototype: true }),
  ),
})).value;

const fields = fc.dictionary(key, value, { maxKeys: 12, noNullPrototype: true });

describe("a message", () => {
  test("comes back as it was encoded", () => {
    fc.assert(
      fc.property(fields, fc.option(fc.uint8Array({ maxLength: 500 })), (entries, data) => {
        const bytes = encodeMessage(entries, data ?? undefined);
        const message = decodeMessage(bytes);
        expect(message.fields).toEqual(entries);
        expect([...message.data]).toEqual([...(data ?? [])]);
      }),
    );
  });

  test("comes back from the middle of a larger buffer at any offset", () => {
    const bytes = encodeMessage(FIELDS, DATA);
    for (let offset = 0; offset < 9; offset++) {
      const buffer = new Uint8Array(bytes.length + 20).fill(0xa5);
      buffer.set(bytes, offset);
      const view = buffer.subarray(offset, offset + bytes.length);
      expect(decodeMessage(view).fields).toEqual(FIELDS);
      expect([...decodeMessage(view).data]).toEqual([...DATA]);
      expect(readCrc(view)).toBe(readCrc(bytes));
    }
  });

  test("begins with the checksum and the version and ends with the tensor bytes", () => {
    const bytes = Buffer.from(encodeMessage({ a: 5 }, DATA));
    expect(bytes.subarray(0, 6).toString("hex")).toBe("84a3637263ce");
    expect(bytes.subarray(10, 16).toString("hex")).toBe("a17601a16105");
    expect(bytes.subarray(16, 26).toString("hex")).toBe("a464617461c600000028");
    expect([...bytes.subarray(26)]).toEqual([...DATA]);
    const covered = Buffer.concat([bytes.subarray(0, 6), bytes.subarray(10)]);
    expect(readCrc(bytes)).toBe(crc32(covered));
  });

  test("is sealed until a bit of it changes; cut off, or of another kind, bytes are not sealed", () => {
    const bytes = encodeMessage({ a: 5 }, DATA);
    expect(isSealed(bytes)).toBe(true);
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const hurt = Uint8Array.from(bytes);
      hurt[bit >> 3] = (hurt[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(isSealed(hurt)).toBe(false);
    }
    for (let length = 0; length < bytes.length; length++) {
      expect(isSealed(bytes.subarray(0, length))).toBe(false);
    }
  });

  test("gives a view of the received bytes, not a copy", () => {
    const bytes = encodeMessage(FIELDS, DATA);
    expect(decodeMessage(bytes).data.buffer).toBe(bytes.buffer);
  });

  test("tells no tensor bytes from none, but gives an empty view for both", () => {
    expect(encodeMessage({})).not.toEqual(encodeMessage({}, new Uint8Array(0)));
    expect(decodeMessage(encodeMessage({})).data).toHaveLength(0);
    expect(decodeMessage(encodeMessage({}, new Uint8Array(0))).data).toHaveLength(0);
  });

  test("can be filled after it was drafted, and sealed again", () => {
    const draft = draftMessage(FIELDS, 4);
    draft.data.set([1, 2, 3, 4]);
    expect([...decodeMessage(sealMessage(draft)).data]).toEqual([1, 2, 3, 4]);
    draft.data.set([5]);
    expect(codeOf(() => decodeMessage(draft.bytes))).toBe("BAD_CHECKSUM");
    expect([...decodeMessage(sealMessage(draft)).data]).toEqual([5, 2, 3, 4]);
  });

  test("comes back though its texts are more than a reader keeps", () => {
    const texts = Array.from({ length: 6000 }, (_, i) => `${"x".repeat(i % 50)}${i}é`);
    const entries = { texts, map: Object.fromEntries(texts.map((text, i) => [text, i])) };
    const bytes = encodeMessage(entries);
    for (let i = 0; i < 2; i++) expect(decodeMessage(bytes).fields).toEqual(entries);
  });

  test("keeps its texts when the received bytes are overwritten", () => {
    const texts = Array.from({ length: 50 }, (_, i) => "x".repeat(i));
    const bytes = encodeMessage({ texts });
    const received = Uint8Array.from(bytes);
    const { fields } = decodeMessage(received);
    received.fill(0x79);
    expect(fields).toEqual({ texts });
    expect(decodeMessage(bytes).fields).toEqual({ texts });
  });

  test("does not share its bytes with later ones", () => {
    const first = encodeMessage({ a: 1 });
    const copy = Uint8Array.from(first);
    for (let i = 0; i < 100; i++) encodeMessage({ a: i, text: "x".repeat(100) });
    expect(first).toEqual(copy);
    const packed = packValue([1]);
    packValue([2]);
    expect([...packed]).toEqual([0x91, 1]);
  });
});

test("nothing, inside a list or map, is written as nil", () => {
  const bytes = encodeMessage({ a: [undefined, 1], b: { c: undefined } });
  expect(Buffer.from(bytes.subarray(13)).toString("hex")).toBe("a16192c001a16281a163c0");
  expect(decodeMessage(bytes).fields).toEqual({ a: [null, 1], b: { c: null } });
});

test("a map without a prototype is written like any other", () => {
  const map = Object.assign(Object.create(null) as object, { b: 1 });
  expect(encodeMessage({ a: map })).toEqual(encodeMessage({ a: { b: 1 } }));
});

describe("damage", () => {
  test.each([
    ["with tensor bytes", encodeMessage(FIELDS, DATA)],
    ["without", encodeMessage(FIELDS)],
  ])("of any one bit is found out, %s", (_what, bytes) => {
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const changed = Uint8Array.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(["BAD_CHECKSUM", "BAD_MESSAGE"]).toContain(codeOf(() => decodeMessage(changed)));
    }
  });

  test("by losing bytes at the end, or at the beginning, or by one more, is found out", () => {
    const bytes = encodeMessage(FIELDS, DATA);
    for (let length = 0; length < bytes.length; length++) {
      const codes = ["BAD_CHECKSUM", "BAD_MESSAGE"];
      expect(codes).toContain(codeOf(() => decodeMessage(bytes.subarray(0, length))));
      expect(codes).toContain(codeOf(() => decodeMessage(bytes.subarray(length + 1))));
    }
    const longer = Buffer.concat([bytes, new Uint8Array(1)]);
    expect(codeOf(() => decodeMessage(longer))).toBe("BAD_CHECKSUM");
    expect(codeOf(() => decodeMessage(sealMessage({ bytes: longer, data: longer })))).toBe(
      "BAD_MESSAGE",
    );
  });

  // On both sides of each length from which on the checksum is computed in another way.
  test.each([16_383, 16_384, 32_768, 65_535, 65_536, 65_537, 200_001, 1_048_576])(
    "of %i tensor bytes is found out, wherever it is",
    (length) => {
      const bytes = encodeMessage(FIELDS, new Uint8Array(length).fill(0xa7));
      const covered = Buffer.concat([bytes.subarray(0, 6), bytes.subarray(10)]);
      expect(readCrc(bytes)).toBe(crc32(covered));
      expect(decodeMessage(bytes).data).toHaveLength(length);
      const start = bytes.length - length;
      const places = [start, 16_383, 32_768, 65_535, 65_536, 65_537, length / 2, bytes.length - 1];
      for (const place of places.map(Math.floor).filter((at) => at < bytes.length)) {
        bytes[place] = (bytes[place] ?? 0) ^ 0x10;
        expect(
          codeOf(() => decodeMessage(bytes)),
          `${place}`,
        ).toBe("BAD_CHECKSUM");
        bytes[place] = (bytes[place] ?? 0) ^ 0x10;
      }
      expect(codeOf(() => decodeMessage(bytes.subarray(0, -1)))).toBe("BAD_CHECKSUM");
      const longer = Buffer.concat([bytes, new Uint8Array(1)]);
      expect(codeOf(() => decodeMessage(longer))).toBe("BAD_CHECKSUM");
    },
  );

  test("says what was expected and received", () => {
    const bytes = encodeMessage(FIELDS);
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] ?? 0) ^ 1;
    const { code, message, details } = refusalOf(() => decodeMessage(bytes));
    expect(code).toBe("BAD_CHECKSUM");
    expect(message).toMatch(/says 0x[0-9a-f]{8}, its bytes give 0x[0-9a-f]{8}/);
    expect(details["expected"]).not.toBe(details["received"]);
    bytes.set([0, 0, 0, 1], 6);
    expect(refusalOf(() => decodeMessage(bytes)).message).toContain("says 0x00000001, ");
  });
});

test.each([0, 2, 127])("version %i is refused", (version) => {
  const draft = draftMessage({ a: 1 });
  draft.bytes[12] = version;
  const { code, details } = refusalOf(() => decodeMessage(sealMessage(draft)));
  expect(code).toBe("BAD_VERSION");
  expect(details["expected"]).toBe(PROTOCOL_VERSION);
});

describe("what no message can carry is not encoded", () => {
  test.each([
    ["a Float32Array", new Float32Array([1.5])],
    ["an Int8Array", new Int8Array([1])],
    ["a Uint8ClampedArray", new Uint8ClampedArray([1])],
    ["a DataView", new DataView(new ArrayBuffer(2))],
    ["an ArrayBuffer", new ArrayBuffer(2)],
    ["a Date", new Date(0)],
    ["a Set", new Set([1])],
    ["a Map", new Map([["a", 1]])],
    ["an Error", new Error("x")],
    ["a bigint", 5n],
    ["a function", () => 1],
    ["a symbol", Symbol("x")],
    ["a list in itself", circular()],
  ])("%s, at any depth", (_what, odd) => {
    for (const entries of [{ a: odd }, { a: [odd] }, { a: { b: [{ c: odd }] } }]) {
      expect(codeOf(() => encodeMessage(entries))).toBe("INTERNAL");
    }
  });

  test.each(["\ud800", "a\udc00", `${"x".repeat(100)}\ud800`])(
    "half a surrogate pair: %j",
    (text) => {
      for (const entries of [{ a: text }, { a: [text] }, { a: { [text]: 1 } }]) {
        expect(codeOf(() => encodeMessage(entries))).toBe("BAD_VALUE");
      }
    },
  );

  test.each<[string, unknown]>([
    ["1: a message cannot carry a function", [1, () => 1]],
    ["b: a message cannot carry such a Date", { b: new Date(0) }],
    ["0: expected text; received half a surrogate pair", ["\ud800"]],
    ["a key of a: expected text; received half a surrogate pair", { "\ud800": 1 }],
    ["a key of 1: expected text; received half a surrogate pair", [0, { "\ud800": 1 }]],
  ])("and is named: %s", (message, odd) => {
    expect(refusalOf(() => encodeMessage({ a: odd })).message).toBe(message);
  });

  test("an entry of the envelope's own", () => {
    for (const name of ["crc", "v", "data"]) {
      expect(codeOf(() => encodeMessage({ [name]: 1 }))).toBe("INTERNAL");
    }
  });

  test("more than 15 entries, of which two or three are the envelope's", () => {
    const entries = (count: number): Fields =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));
    expect(decodeMessage(encodeMessage(entries(13))).fields).toEqual(entries(13));
    expect(decodeMessage(encodeMessage(entries(12), DATA)).fields).toEqual(entries(12));
    expect(codeOf(() => encodeMessage(entries(14)))).toBe("INTERNAL");
    expect(codeOf(() => encodeMessage(entries(13), DATA))).toBe("INTERNAL");
  });

  test("lists and maps more than 16 deep, the message being the first", () => {
    for (const nest of [(inner: unknown) => [inner], (inner: unknown) => ({ a: inner })]) {
      const deepest = nestedIn(15, nest);
      expect(decodeMessage(encodeMessage({ a: deepest })).fields).toEqual({ a: deepest });
      expect(codeOf(() => encodeMessage({ a: nest(deepest) }))).toBe("INTERNAL");
    }
  });

  test("an entry that is undefined is left out", () => {
    expect(encodeMessage({ a: undefined, b: 1 })).toEqual(encodeMessage({ b: 1 }));
  });
});

test("a packed value comes back", () => {
  fc.assert(
    fc.property(value, (given) => {
      expect(unpackValue(packValue(given))).toEqual(given);
    }),
  );
});

test("whole numbers of every width come back", () => {
  for (let bits = 0; bits <= 53; bits++) {
    for (const near of [-1, 0, 1]) {
      for (const number of [2 ** bits + near, -(2 ** bits) + near]) {
        expect(unpackValue(packValue(number))).toBe(number);
      }
    }
  }
});

test("whatever bytes are sealed, the checksum covers all but its own", () => {
  const begun = fc.tuple(fc.integer({ min: 0x7e, max: 0x92 }), fc.uint8Array({ maxLength: 40 }));
  const enveloped = begun.map(([type, rest]) =>
    Uint8Array.of(type, 0xa3, 0x63, 0x72, 0x63, 0xce, 0, 0, 0, 0, ...rest),
  );
  const any = fc.oneof(enveloped, fc.uint8Array({ minLength: 10, maxLength: 60 }));
  fc.assert(
    fc.property(any, (bytes) => {
      const covered = Buffer.concat([bytes.subarray(0, 6), bytes.subarray(10)]);
      expect(readCrc(sealMessage({ bytes, data: bytes }))).toBe(crc32(covered));
    }),
    { numRuns: 1000 },
  );
});

test("the checksum is CRC-32 as in zlib, and can be continued", () => {
  expect(checksum(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  expect(checksum(DATA.subarray(7), checksum(DATA.subarray(0, 7)))).toBe(checksum(DATA));
});

/** A number in so many lists or maps. */
function nestedIn(depth: number, nest: (inner: unknown) => unknown): unknown {
  return depth === 0 ? 1 : nest(nestedIn(depth - 1, nest));
}

function circular(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}
