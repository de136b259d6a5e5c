// Proves that frames of Legion's wire are read alike however the stream is cut, that no length or shape in
// one takes memory before it is checked, and that a peer that stops or dawdles is not waited for.
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { ByteSource } from "../../../src/cli/legion-gateway/byte-source.ts";
import {
  FRAME,
  frameHeader,
  frameLength,
  JSON_BYTES_MAX,
  jsonFrame,
  parseArrayHeader,
  parseJsonFrame,
} from "../../../src/cli/legion-gateway/frames.ts";
import { parseRequest } from "../../../src/cli/legion-gateway/requests.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

const TIMEOUTS = { idleMs: 60_000, stallMs: 60_000 };

/** A stream of bytes cut at some places. */
async function* cut(bytes: Uint8Array, places: readonly number[]): AsyncGenerator<Uint8Array> {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  let start = 0;
  for (const end of ends) {
    yield bytes.subarray(start, end);
    start = end;
  }
}

function codeOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (error) {
    if (error instanceof PserverError) return error.code;
    throw error;
  }
}

async function readJson(source: ByteSource): Promise<unknown> {
  const header = new Uint8Array(8);
  await source.fill(header, "header");
  const bytes = new Uint8Array(frameLength(header, FRAME.json, JSON_BYTES_MAX));
  await source.fill(bytes, "frame");
  return parseJsonFrame(bytes);
}

describe("a stream of frames", () => {
  test("is the same wherever it is cut", async () => {
    const values = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 5 });
    const places = fc.array(fc.nat(), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(values, places, async (sent, at) => {
        const source = new ByteSource(cut(Buffer.concat(sent.map(jsonFrame)), at), TIMEOUTS);
        const received: unknown[] = [];
        while (await source.hasMore()) received.push(await readJson(source));
        expect(JSON.stringify(received)).toBe(JSON.stringify(sent));
      }),
    );
  });

  test("that ends within a frame says where", async () => {
    const bytes = jsonFrame({ query_id: 20, name: "w" });
    for (let length = 1; length < bytes.length; length++) {
      const source = new ByteSource(cut(bytes.subarray(0, length), []), TIMEOUTS);
      await expect(readJson(source)).rejects.toMatchObject({ code: "BAD_LENGTH" });
    }
  });

  test.each(["nothing more comes", "it comes too slowly"])("is given up when %s", async (how) => {
    vi.useFakeTimers();
    try {
      const delayed = async function* (): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < 10_000; i++) {
          const waitMs = how === "nothing more comes" && i > 0 ? 3_600_000 : 900;
          await new Promise((resolve) => setTimeout(resolve, waitMs));
          yield Uint8Array.of(0);
        }
      };
      const source = new ByteSource(delayed(), { idleMs: 5_000, stallMs: 1_000 });
      const filling = source.fill(new Uint8Array(64_000), "an array");
      const settled = expect(filling).rejects.toMatchObject({ code: "TIMEOUT" });
      await vi.advanceTimersByTimeAsync(3_000);
      await settled;
    } finally {
      vi.useRealTimers();
    }
  });
});

test("a header is taken only with the expected kind and a length within bounds", () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), fc.nat(), (length, max) => {
      const header = frameHeader(FRAME.numeric, length);
      const expected = length >= 0 && length <= max ? "none" : "BAD_LENGTH";
      expect(codeOf(() => frameLength(header, FRAME.numeric, max))).toBe(expected);
      expect(codeOf(() => frameLength(header, FRAME.json, max))).toBe("BAD_MESSAGE");
    }),
  );
});

test("an array is announced with a dtype and shape that can be counted", () => {
  const header = parseArrayHeader({ dtype: "int64", shape: [2, 3] }, "w", 48);
  expect(header).toEqual({ dtype: "int64", shape: [2, 3], elements: 6, bytes: 48 });
  expect(parseArrayHeader({ dtype: "float32", shape: [] }, "w", 4).elements).toBe(1);
  const code = (dtype: unknown, shape: unknown): string =>
    codeOf(() => parseArrayHeader({ dtype, shape }, "w", 1_000));
  for (const dtype of ["float16", "complex64", "<f4", "toString", "", 5, null, undefined]) {
    expect(code(dtype, [1]), String(dtype)).toBe("BAD_DTYPE");
  }
  for (const shape of [
    undefined,
    null,
    3,
    "3",
    [1.5],
    [-1],
    ["2"],
    [null],
    [2 ** 53],
    Array(33).fill(1),
  ]) {
    expect(code("float32", shape), JSON.stringify(shape)).toBe("BAD_SHAPE");
  }
  expect(code("float32", [2 ** 30, 2 ** 30])).toBe("BAD_SHAPE");
  expect(code("float32", [251])).toBe("TOO_LARGE");
  expect(() => parseArrayHeader({ dtype: "complex64", shape: [1] }, "w", 9)).toThrow('"complex64"');
});

describe("a query", () => {
  const good = { query_id: 23, name: "w", alpha: 0.5, beta: 1, axis_numbers: [[0], [], [-1, 2]] };

  test("is what its number says", () => {
    expect(parseRequest(good)).toEqual({
      ...{ query: "pushPart", name: "w", alpha: 0.5, beta: 1 },
      axes: [[0], [], [-1, 2]],
    });
    expect(parseRequest({ query_id: 28, path: "/a" })).toEqual({ query: "save", path: "/a" });
  });

  test("with a wrong entry is refused by its name", () => {
    const wrong = {
      query_id: [26, "20", null, 20.5],
      name: [undefined, "", 5],
      alpha: [undefined, "1", null],
      beta: [{}],
      axis_numbers: [undefined, [0], [[0.5]], [["0"]], {}],
    };
    for (const [entry, values] of Object.entries(wrong)) {
      for (const value of values) {
        const given = { ...good, [entry]: value };
        expect(codeOf(() => parseRequest(given))).toBe("BAD_MESSAGE");
        expect(() => parseRequest(given)).toThrow(entry);
      }
    }
  });

  test("of any JSON at all is a request or BAD_MESSAGE", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...Object.keys(good), "path"), fc.jsonValue()),
        (any) => {
          expect(["none", "BAD_MESSAGE"]).toContain(codeOf(() => parseRequest(any)));
        },
      ),
    );
  });
});
