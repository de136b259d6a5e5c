// Proves that bytes become the same lines however they arrive in pieces, that ends of lines are those of
// programs and progress bars, and that a long line is cut between characters.
import fc from "fast-check";
import { expect, test } from "vitest";
import { LINE_BYTES_MAX, LineSplitter } from "../../../src/cli/run/trainer-output.ts";

function split(chunks: readonly Buffer[], bytesMax = LINE_BYTES_MAX): string[] {
  const splitter = new LineSplitter(bytesMax);
  const lines = chunks.flatMap((chunk) => splitter.push(chunk));
  return [...lines, ...splitter.end()].map((line) => line.toString("utf8"));
}

test("lines end with LF, CR LF or CR, and the last one may have no end", () => {
  expect(split([Buffer.from("a\nb\r\n\n10%\r20%\r\nend")])).toEqual([
    "a",
    "b",
    "",
    "10%",
    "20%",
    "end",
  ]);
  expect(split([Buffer.from("a\r"), Buffer.from("\nb\n")])).toEqual(["a", "b"]);
  expect(split([])).toEqual([]);
});

test("a line that is too long is cut between characters", () => {
  expect(split([Buffer.from("12345678\n9")], 4)).toEqual(["1234", "5678", "9"]);
  expect(split([Buffer.from("aé€😀b\n")], 4)).toEqual(["aé", "€", "😀", "b"]);
  const noText = Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80, 0x80]);
  const splitter = new LineSplitter(4);
  expect(splitter.push(noText).map((piece) => piece.length)).toEqual([4]);
  expect(splitter.end().map((piece) => piece.length)).toEqual([2]);
});

test("pieces make no difference", () => {
  const text = fc.array(fc.constantFrom("a", "bc", "é", "😀", "\n", "\r", "\r\n"), {
    maxLength: 40,
  });
  const cuts = fc.array(fc.nat({ max: 9 }), { maxLength: 60 });
  fc.assert(
    fc.property(text, cuts, (parts, sizes) => {
      const whole = Buffer.from(parts.join(""));
      const chunks: Buffer[] = [];
      let from = 0;
      for (const size of sizes) {
        chunks.push(whole.subarray(from, from + size));
        from += size;
      }
      chunks.push(whole.subarray(from));
      expect(split(chunks)).toEqual(split([whole]));
      const expected = parts.join("").split(/\r\n|\n|\r/);
      if (expected.at(-1) === "") expected.pop();
      expect(split([whole])).toEqual(expected);
      for (const line of split(chunks, 5)) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(5);
      expect(split(chunks, 5).join("")).toBe(expected.join(""));
    }),
  );
});
