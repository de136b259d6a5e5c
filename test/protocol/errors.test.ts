// Proves the error table's own rules, and that an error survives encoding: its message comes back, whatever
// its details hold, and an unknown code is kept in them.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage } from "../../src/protocol/codec.ts";
import {
  ERROR_CODES,
  ensureError,
  errorFromWire,
  isErrorCode,
  PserverError,
  reactionTo,
} from "../../src/protocol/errors.ts";
import { encodeError, throwIfError } from "../../src/protocol/messages/outcomes.ts";
import { codeOf, refusalOf } from "./refusal.ts";

/** The error as it is received. */
function sent(error: PserverError): PserverError {
  return refusalOf(() => throwIfError(decodeMessage(encodeError(error)).fields));
}

test("the table has one number a code, and says what each means", () => {
  const entries = Object.entries(ERROR_CODES);
  const numbers = entries.map(([, { number }]) => number);
  expect(new Set(numbers).size).toBe(numbers.length);
  // In this order the documentation lists them.
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  for (const [code, { number, meaning }] of entries) {
    expect(code).toMatch(/^[A-Z]+(?:_[A-Z]+)*$/);
    expect(number > 0 && number < 100 && Number.isInteger(number)).toBe(true);
    expect(meaning).toMatch(/^[a-z].*[^.]$/);
  }
});

test("codes after which clients ask again are those that can succeed later", () => {
  for (const code of Object.keys(ERROR_CODES).filter(isErrorCode)) {
    const isAskedAgain = ["retry", "await-init"].includes(reactionTo(code));
    expect(isAskedAgain, code).toBe(ERROR_CODES[code].retryable);
  }
});

describe("an error that travels", () => {
  test("comes back", () => {
    const details = { parameter: "w", expected: [2, 3], received: { a: null }, n: 1.5 };
    const error = sent(new PserverError("BAD_SHAPE", "w: wrong", details));
    expect(error).toMatchObject({ code: "BAD_SHAPE", message: "w: wrong", details });
    expect(error.retryable).toBe(false);
    expect(sent(new PserverError("BUSY", "later")).retryable).toBe(true);
  });

  test("comes back whatever its details hold", () => {
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    for (const odd of [
      new Float32Array(4),
      new Uint8Array(1_000_000),
      new Date(0),
      5n,
      () => 1,
      Symbol("x"),
      circular,
      "x".repeat(1_000_000),
      "\ud800",
      { "\ud800": 1 },
      { ["__proto__"]: 1 },
      new Array(100_000).fill("x"),
      undefined,
    ]) {
      const error = sent(new PserverError("BAD_VALUE", "odd", { odd }));
      expect(error).toMatchObject({ code: "BAD_VALUE", message: "odd" });
      expect(encodeError(error).length).toBeLessThan(200_000);
    }
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.anything()), (details) => {
        expect(sent(new PserverError("BAD_VALUE", "odd", details)).code).toBe("BAD_VALUE");
      }),
    );
  });

  test("is cut where its text is long, and well-formed", () => {
    const error = sent(new PserverError("BAD_VALUE", `${"x".repeat(1999)}🙂`));
    expect(error.message).toBe(`${"x".repeat(1999)}\ufffd`);
  });

  test("of a newer version keeps its code", () => {
    const error = errorFromWire({ code: "TOO_CLEVER", message: "no", details: { a: 1 } });
    expect(error).toMatchObject({ code: "INTERNAL", details: { a: 1, code: "TOO_CLEVER" } });
    expect(isErrorCode("toString")).toBe(false);
  });

  test.each([
    ["error", null],
    ["error", "no"],
    ["code", { message: "m" }],
    ["code", { code: 7, message: "m" }],
    ["message", { code: "BUSY" }],
    ["error details", { code: "BUSY", message: "m", details: [1] }],
  ])("is refused if %s is wrong", (what, error) => {
    const refusal = refusalOf(() => throwIfError({ error }));
    expect(refusal.code).toBe("BAD_MESSAGE");
    expect(refusal.message).toContain(`${what}: expected`);
  });

  test("is undefined if there is no error", () => {
    expect(codeOf(() => throwIfError({ state: "ready" }))).toBe("");
  });
});

test("anything thrown becomes an error of ours", () => {
  const own = new PserverError("BUSY", "later");
  expect(ensureError(own)).toBe(own);
  const cause = new TypeError("x is not a function");
  expect(ensureError(cause)).toMatchObject({ code: "INTERNAL", message: cause.message, cause });
  expect(ensureError("text").message).toBe("text");
});
