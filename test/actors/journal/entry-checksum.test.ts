// Proves that an entry of a bucket is read as it was written, or not at all: whichever bit of its text or key has
// changed, reading it ends with JOB_DAMAGED, which names the entry.
import { expect, test } from "vitest";
import { decodeEntry, encodeEntry } from "../../../src/actors/journal/kv-bucket.ts";
import { PserverError } from "../../../src/protocol/index.ts";

const KEY = "param.w";
const VALUE = { format: 1, name: "w", shape: [2, 3], nested: { ready: true, text: 'a "}' } };

/** The error that reading ends with; undefined if the text is read. */
function refusal(key: string, text: string): unknown {
  try {
    decodeEntry(key, text, "PS_j");
    return undefined;
  } catch (error) {
    return error;
  }
}

test("an entry is JSON that people can read, and is read without its checksum", () => {
  const text = encodeEntry(KEY, VALUE);
  expect(JSON.parse(text)).toEqual({ ...VALUE, crc: expect.any(Number) });
  expect(decodeEntry(KEY, text, "PS_j")).toEqual(VALUE);
});

test("an entry with any bit changed is damaged", () => {
  const bytes = Buffer.from(encodeEntry(KEY, VALUE));
  for (let at = 0; at < 8 * bytes.length; at++) {
    const hurt = Buffer.from(bytes);
    hurt[at >> 3] = (hurt[at >> 3] ?? 0) ^ (1 << (at & 7));
    const error = refusal(KEY, hurt.toString());
    expect(error, `bit ${at}`).toBeInstanceOf(PserverError);
    expect(error).toMatchObject({ code: "JOB_DAMAGED", details: { key: KEY, bucket: "PS_j" } });
  }
});

test("an entry that was written under another key, or cut off, is damaged", () => {
  const text = encodeEntry(KEY, VALUE);
  expect(refusal("param.v", text)).toMatchObject({ code: "JOB_DAMAGED" });
  for (let length = 0; length < text.length; length++) {
    expect(refusal(KEY, text.slice(0, length))).toMatchObject({ code: "JOB_DAMAGED" });
  }
  expect(refusal(KEY, JSON.stringify(VALUE))).toMatchObject({
    message: expect.stringContaining("expected a checksum at its end"),
  });
});
