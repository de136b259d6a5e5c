// Proves what limits the memory of a broker: the flag, else the caller's environment, else a share of what
// there is. That a broker is started with it is proved by test/e2e/start-broker.test.ts.
import { describe, expect, test } from "vitest";
import { limitMemory, parseGoLimit } from "../../src/broker/broker-memory.ts";
import { refusalOf } from "../protocol/refusal.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;

describe("a broker's environment limits its memory", () => {
  test("to a quarter of what there is, and lets it grow by little between collections", () => {
    const environment = { LANG: "C" };
    expect(limitMemory({ environment, totalBytes: 8 * GIB })).toEqual({
      LANG: "C",
      GOMEMLIMIT: String(2 * GIB),
      GOGC: "25",
    });
  });

  test("to its part of that quarter, in a cluster on one machine", () => {
    const found = limitMemory({ environment: {}, brokers: 4, totalBytes: 8 * GIB });
    expect(found["GOMEMLIMIT"]).toBe(String(GIB / 2));
  });

  test("to what the caller's environment says", () => {
    const environment = { GOMEMLIMIT: "3GiB", GOGC: "off" };
    expect(limitMemory({ environment, totalBytes: 8 * GIB })).toEqual(environment);
  });

  test("to the bytes that are given, whatever the environment says", () => {
    const environment = { GOMEMLIMIT: "3GiB" };
    const found = limitMemory({ environment, limitBytes: GIB, totalBytes: 8 * GIB });
    expect(found["GOMEMLIMIT"]).toBe(String(GIB));
  });

  test("to what it needs without load, where a quarter is less", () => {
    const found = limitMemory({ environment: {}, totalBytes: 256 * MIB });
    expect(found["GOMEMLIMIT"]).toBe(String(128 * MIB));
  });

  test.each([128 * MIB - 1, 8 * GIB + 1])("and is refused for %d of 8 GiB", (limitBytes) => {
    const error = refusalOf(() =>
      limitMemory({ environment: {}, limitBytes, totalBytes: 8 * GIB }),
    );
    expect(error).toMatchObject({ code: "BAD_VALUE", details: { received: limitBytes } });
    expect(error.message).toContain(`134217728 to ${8 * GIB} bytes`);
  });
});

test.each([
  ["1073741824", GIB],
  ["5B", 5],
  ["2KiB", 2048],
  ["3MiB", 3 * MIB],
  ["2GiB", 2 * GIB],
  ["1TiB", 1024 * GIB],
  ["", undefined],
  ["off", undefined],
  ["2GB", undefined],
])("GOMEMLIMIT=%s is %s bytes", (text, bytes) => {
  expect(parseGoLimit(text)).toBe(bytes);
});
