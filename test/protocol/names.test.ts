// Proves the escaping of names: every string is refused or comes back from its token, tokens are
// legal wherever they are used, and no two names share one. Generated strings cover all of Unicode;
// the borders are tried by hand.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkJobName,
  escapeId,
  escapeName,
  quoteName,
  unescapeId,
  unescapeName,
} from "../../src/protocol/names.ts";
import { anyText, validName } from "./arbitraries.ts";
import { codeOf, refusalOf } from "./refusal.ts";

/** The token of a name, undefined if the name is refused. */
function tokenOf(name: string): string | undefined {
  return codeOf(() => escapeName(name)) === "" ? escapeName(name) : undefined;
}

describe("escaping", () => {
  test.each([
    ["w", "w"],
    ["A-Z_09", "A-Z_09"],
    ["emb:sparse-0", "emb=3Asparse-0"],
    ["a.b", "a=2Eb"],
    ["*", "=2A"],
    [">", "=3E"],
    [" ", "=20"],
    ["=", "=3D"],
    ["=41", "=3D41"],
    ["ü", "=C3=BC"],
    ["層", "=E5=B1=A4"],
    ["🙂", "=F0=9F=99=82"],
    ["\0", "=00"],
    ["\r\n", "=0D=0A"],
    ["\ufeffw", "=EF=BB=BFw"],
  ])("%j is %s", (name, token) => {
    expect(escapeName(name)).toBe(token);
    expect(unescapeName(token)).toBe(name);
  });

  test("gives every string back or refuses it", () => {
    fc.assert(
      fc.property(anyText, (name) => {
        const token = tokenOf(name);
        const encoded = new TextEncoder().encode(name);
        const longest = 3 * encoded.length;
        if (token === undefined) {
          expect(name === "" || !name.isWellFormed() || longest > 200).toBe(true);
        } else {
          expect(token).toMatch(/^(?:[A-Za-z0-9_-]|=[0-9A-F]{2}){1,200}$/);
          expect(unescapeName(token)).toBe(name);
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("gives a name the same token however many others were escaped meanwhile", () => {
    for (const round of [1, 2]) {
      for (let i = 0; i < 5_000; i++)
        expect(escapeName(`p.${i}`), `round ${round}`).toBe(`p=2E${i}`);
    }
  });

  test("never gives two names one token", () => {
    fc.assert(
      fc.property(validName, validName, (a, b) => {
        expect(escapeName(a) === escapeName(b)).toBe(a === b);
      }),
    );
  });

  test("takes back only tokens that it gives", () => {
    const unit = fc.constantFrom("a", "=", "0", "4", "1", "C", "3", "B", "F", "c", ".", "é");
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 12 }), (token) => {
        if (codeOf(() => unescapeName(token)) === "") {
          expect(escapeName(unescapeName(token))).toBe(token);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ["=41", "an escape that was not needed"],
    ["=5F", "an escape that was not needed"],
    ["=c3=bc", "lower case"],
    ["=C3", "half a character"],
    ["=C0=80", "an overlong form"],
    ["=ED=A0=80", "half a surrogate pair"],
    ["=F4=90=80=80", "beyond Unicode"],
    ["=G0", "no hex digits"],
    ["=4", "half an escape"],
    ["", "nothing"],
    ["a.b", "two tokens"],
    ["a\n", "a line end"],
  ])("refuses the token %j: %s", (token) => {
    expect(codeOf(() => unescapeName(token))).toBe("BAD_NAME");
  });
});

describe("limits", () => {
  test("a name takes 1 to 200 bytes once escaped", () => {
    expect(escapeName("a".repeat(200))).toHaveLength(200);
    expect(escapeName("ü".repeat(33))).toHaveLength(198);
    for (const name of ["", "a".repeat(201), "ü".repeat(34), "a".repeat(10_000)]) {
      expect(codeOf(() => escapeName(name))).toBe("BAD_NAME");
    }
  });

  test("what was escaped as a parameter may still be too long for an id", () => {
    const name = "i".repeat(65);
    expect(escapeName(name)).toBe(name);
    expect(refusalOf(() => escapeId(name)).code).toBe("BAD_NAME");
    expect(escapeName(name)).toBe(name);
  });

  test("a token is no longer than a name may be", () => {
    expect(unescapeName("a".repeat(200))).toHaveLength(200);
    expect(codeOf(() => unescapeName("a".repeat(201)))).toBe("BAD_NAME");
    expect(codeOf(() => unescapeName("=2E".repeat(67)))).toBe("BAD_NAME");
    expect(codeOf(() => unescapeName("a".repeat(10_000)))).toBe("BAD_NAME");
  });

  test("an id takes 1 to 64 bytes, in both directions", () => {
    expect(unescapeId(escapeId("a".repeat(64)))).toHaveLength(64);
    expect(codeOf(() => escapeId("a".repeat(65)))).toBe("BAD_NAME");
    expect(codeOf(() => escapeId("ü".repeat(11)))).toBe("BAD_NAME");
    expect(codeOf(() => unescapeId("a".repeat(65)))).toBe("BAD_NAME");
  });

  test.each(["\ud800", "\udc00", "a\ud800b", "\udc00\ud800"])("refuses half a pair: %j", (name) => {
    expect(codeOf(() => escapeName(name))).toBe("BAD_NAME");
  });

  test.each([undefined, null, 7, {}, ["w"]])("refuses a value that is not a string: %j", (name) => {
    expect(codeOf(() => escapeName(name as unknown as string))).toBe("BAD_NAME");
    expect(codeOf(() => checkJobName(name as unknown as string))).toBe("BAD_NAME");
  });
});

test("a job's name is 1 to 40 of A-Z a-z 0-9 -", () => {
  for (const job of ["a", "Job-7", "-", "x".repeat(40)]) expect(checkJobName(job)).toBe(job);
  for (const job of ["", "x".repeat(41), "a_b", "a.b", "a b", "ü", "a\n", "*", ">"]) {
    expect(codeOf(() => checkJobName(job))).toBe("BAD_NAME");
  }
});

test("an error quotes the name that it is about, cut where it is long", () => {
  expect(refusalOf(() => checkJobName("a b")).message).toContain('"a b"');
  expect(refusalOf(() => escapeName("x".repeat(5000))).message.length).toBeLessThan(200);
  expect(quoteName('a"\n')).toBe('"a\\"\\n"');
  expect(quoteName(7)).toBe("a number");
});
