// Proves which broker versions are refused, supported and recommended: the edges of every rule are listed. And that
// every connection is refused to a broker that is too old, and left.
import { describe, expect, test } from "vitest";
import { PserverError } from "../../src/protocol/errors.ts";
import { checkBrokerVersion } from "../../src/transport/broker-version.ts";
import { connectForBulk } from "../../src/transport/bulk-transport.ts";
import { openConnection } from "../../src/transport/connection.ts";
import { refusalOf } from "../protocol/refusal.ts";
import { startFakeBroker } from "../support/fake-broker.ts";
import { HANG_MS } from "../support/limits.ts";

describe("checkBrokerVersion", () => {
  test.each([
    ["2.10.28", "supported"],
    ["2.10.29", "supported"],
    ["2.11.2", "supported"],
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
    ...["2.9.10", "2.9.25", "2.10.0", "2.10.27", "2.11.0", "2.11.1", "2.8.4", "1.12.15", "0.9.6"],
    ...["", "2.12", "2.12.x", "latest", "2.12.15 x"],
  ])("%j is too old or no version", (version) => {
    const error = refusalOf(() => checkBrokerVersion(version));
    expect(error.code).toBe("BROKER_TOO_OLD");
    expect(error.message).toContain("2.10.28");
    expect(error.message).toContain(version);
    expect(error.details["received"]).toBe(version);
  });
});

test.each(["2.9.10", "2.11.1"])("no connection is made to nats-server %s", async (version) => {
  const broker = await startFakeBroker({ info: { version } });
  const url = `nats://127.0.0.1:${broker.port}`;
  const role = { name: "t", inboxPrefix: "_INBOX.t" };
  for (const attempt of [
    openConnection({ servers: [url], timeoutMs: HANG_MS }, role),
    connectForBulk({ servers: url }),
  ]) {
    const error: unknown = await attempt.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PserverError);
    expect(error).toMatchObject({ code: "BROKER_TOO_OLD", details: { received: version } });
  }
  expect(broker.dialled).toBe(2);
  await broker.close();
});
