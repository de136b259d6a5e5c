// Proves which broker versions are refused, supported and recommended: the edges of every rule are listed.
import { describe, expect, test } from "vitest";
import { checkBrokerVersion } from "../../src/protocol/broker-version.ts";
import { refusalOf } from "./refusal.ts";

describe("checkBrokerVersion", () => {
  test.each([
    ["2.11.2", "supported"],
    ["2.11.11", "supported"],
    ["2.12.0", "recommended"],
    ["2.12.15", "recommended"],
    ["v2.12.15", "recommended"],
    ["2.12.0-RC.1", "recommended"],
    ["2.14.4", "supported"],
    ["3.0.0", "supported"],
    ["3.11.0", "supported"],
  ])("%s is %s", (version, support) => {
    expect(checkBrokerVersion(version)).toBe(support);
  });

  test.each([
    ...["2.9.10", "2.9.25", "2.10.0", "2.10.29", "2.11.0", "2.11.1", "2.8.4", "1.12.15", "0.9.6"],
    ...["", "2.12", "2.12.x", "latest", "2.12.15 x"],
  ])("%j is too old or no version", (version) => {
    const error = refusalOf(() => checkBrokerVersion(version));
    expect(error.code).toBe("BROKER_TOO_OLD");
    expect(error.message).toContain("2.11.2 or newer");
    expect(error.message).toContain(version);
    expect(error.details["received"]).toBe(version);
  });
});
