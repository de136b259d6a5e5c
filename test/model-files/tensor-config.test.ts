// Proves the ParameterConfig bytes against ones put together by hand from the field numbers, and that
// fields a reader does not know are skipped whatever they hold.
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeTensorConfig } from "../../src/model-files/paddle-tar.ts";
import { encodeParameterConfig } from "../../src/protocol/config/paddle/paddle.ts";
import { PserverError } from "../../src/protocol/errors.ts";

function decode(bytes: Uint8Array) {
  return decodeTensorConfig("m.tar", "the configuration", bytes);
}

test("name, size and dims have fields 1, 2 and 9", () => {
  const bytes = encodeParameterConfig({ name: "w0", size: 300, dims: [3, 100] });
  expect(Buffer.from(bytes).toString("hex")).toBe(
    "0a027730" + // 1, text of 2 bytes
      "10ac02" + // 2, 300
      "4803" + // 9, 3
      "4864", // 9, 100
  );
});

test("other fields and packed dims are read over", () => {
  const bytes = Buffer.from(
    "19000000000000f03f" + // 3, a double
      "0a0177" + // 1, "w"
      "50ffffffffffffffffff01" + // 10, -1
      "1006" + // 2, 6
      "4a020203" + // 9, packed 2 and 3
      "a201020a00" + // 20, a message
      "ed0600000000", // 109, four bytes
    "hex",
  );
  expect(decode(bytes)).toEqual({ name: "w", size: 6, dims: [2, 3] });
});

test("what was encoded is decoded; what is cut or random is refused or decoded, never else", () => {
  const config = fc.record({
    name: fc.string({ unit: "binary" }).filter((name) => name.isWellFormed()),
    size: fc.maxSafeNat(),
    dims: fc.array(fc.maxSafeNat(), { maxLength: 5 }),
  });
  fc.assert(
    fc.property(config, (value) => {
      expect(decode(encodeParameterConfig(value))).toEqual(value);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(PserverError);
        expect(error).toHaveProperty("code", "BAD_FILE");
      }
    }),
    { numRuns: 2000 },
  );
});
