// Proves which broker versions are refused, warned of, supported and recommended, and that each
// warning names what that version lacks: the edges of every rule are listed, and the support for
// any version follows from its numbers alone.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { brokerLacks, checkBrokerVersion, checkDurable } from "../../src/broker/broker-version.ts";
import { PserverError } from "../../src/protocol/errors.ts";

describe("checkBrokerVersion", () => {
  test.each([
    ["2.9.4", "warned"],
    ["2.9.10", "warned"],
    ["2.10.0", "warned"],
    ["2.10.27", "warned"],
    ["2.10.28", "supported"],
    ["2.11.0", "warned"],
    ["2.11.1", "warned"],
    ["2.11.2", "supported"],
    ["2.12.0", "recommended"],
    ["2.12.15", "recommended"],
    ["v2.12.15", "recommended"],
    ["2.12.0-RC.1", "recommended"],
    ["2.14.4", "supported"],
    ["3.0.0", "supported"],
  ])("%s is %s", (version, support) => {
    expect(checkBrokerVersion(version)).toBe(support);
  });

  test.each(["2.9.3", "2.8.4", "1.12.15", "0.9.6", "", "2.12", "2.12.x", "latest", "2.12.15 x"])(
    "%j is too old or no version",
    (version) => {
      const error = caught(() => checkBrokerVersion(version));
      expect(error.code).toBe("BROKER_TOO_OLD");
      expect(error.message).toContain("2.9.4");
      expect(error.details["received"]).toBe(version);
    },
  );
});

describe("brokerLacks", () => {
  test("names the gaps of Debian 12's broker", () => {
    const gaps = brokerLacks("2.9.10").join("\n");
    for (const gap of ["purge", "single node", "power loss", "32 MiB", "security"]) {
      expect(gaps).toContain(gap);
    }
  });

  test("names only what the version lacks", () => {
    expect(brokerLacks("2.11.1")).toEqual(["a record above 32 MiB is acknowledged and then lost"]);
    expect(brokerLacks("2.10.0").join("\n")).not.toContain("power loss");
    expect(brokerLacks("2.12.15")).toEqual([]);
  });

  test("is empty exactly for the versions without a warning", () => {
    const version = fc.tuple(fc.constant(2), fc.integer({ min: 10, max: 14 }), fc.nat(40));
    fc.assert(
      fc.property(version, (numbers) => {
        const text = numbers.join(".");
        expect(brokerLacks(text).length > 0).toBe(checkBrokerVersion(text) === "warned");
      }),
    );
  });
});

test("checkDurable lets 2.10 and later through", () => {
  checkDurable("2.10.0");
  checkDurable("2.12.15");
  for (const version of ["2.9.25", "none"]) {
    expect(caught(() => checkDurable(version)).code).toBe("BROKER_TOO_OLD");
  }
});

function caught(call: () => unknown): PserverError {
  try {
    call();
  } catch (error) {
    if (error instanceof PserverError) return error;
    throw error;
  }
  throw new Error("expected an error");
}
