// Proves that the broker's answer to a message is checked before it is used: anything else is refused, and
// every part of an error may be missing.
import { describe, expect, test } from "vitest";
import { parsePubAck } from "../../src/transport/jetstream.ts";

const parse = (text: string): unknown => parsePubAck(new TextEncoder().encode(text));

describe("an answer", () => {
  test("says where the message is stored", () => {
    expect(parse('{"stream":"S","seq":7,"duplicate":true}')).toEqual({
      kind: "stored",
      stream: "S",
      seq: 7,
    });
  });

  test("or why it is not", () => {
    const error = { code: 503, err_code: 10077, description: "full" };
    expect(parse(JSON.stringify({ error, stream: "S", seq: 0 }))).toEqual({
      kind: "refused",
      error: { code: 503, errorCode: 10077, description: "full" },
    });
    expect(parse('{"error":{}}')).toEqual({
      kind: "refused",
      error: { code: 0, errorCode: 0, description: "" },
    });
  });

  test.each([
    "",
    "{",
    "null",
    "[]",
    "7",
    "{}",
    '{"stream":"S"}',
    '{"stream":"S","seq":0}',
    '{"stream":"S","seq":1.5}',
    '{"stream":"S","seq":"7"}',
    '{"stream":7,"seq":7}',
    '{"error":null}',
    '{"error":"full"}',
    '{"error":{"err_code":"10077"}}',
    '{"error":{"description":7}}',
  ])("is not %s", (text) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: "BAD_MESSAGE" }));
  });
});
