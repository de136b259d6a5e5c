// Proves what each refusal of JetStream means: errors that pass by themselves can be retried, a full store is
// distinguished from a broken one, and JetStream is absent only where the broker says so. The numbers and
// texts are those of nats-server 2.12.
import { describe, expect, test } from "vitest";
import { ERROR_CODES } from "../../src/protocol/errors.ts";
import {
  type JetStreamRefusal,
  refusalCode,
  storeRefusalCode,
} from "../../src/protocol/jetstream-errors.ts";

function refusal(status: number, errorCode: number, description = "it said so"): JetStreamRefusal {
  return { status, errorCode, description };
}

describe("a refusal", () => {
  test.each([
    [503, 10008, "JetStream system temporarily unavailable"],
    [503, 10004, "incomplete results"],
    [500, 10007, "JetStream cluster not assigned to this server"],
    [500, 10009, "JetStream cluster can not handle request"],
    [500, 10041, "raft: not leader"],
    [500, 10118, "stream is offline"],
    [500, 10119, "consumer is offline"],
    [503, 10075, "peer remap failed"],
    [503, 10163, "expected last sequence per subject temporarily unavailable"],
    [429, 10167, "too many requests"],
    [404, 10059, "stream not found"],
    [404, 10014, "consumer not found"],
    [400, 10164, "wrong last sequence"],
    [400, 10005, "no suitable peers for placement, peer offline"],
    [400, 10005, "no suitable peers for placement, peer offline, insufficient storage"],
    [503, 0, "no responders"],
    [408, 0, "request timeout"],
    [500, 19_999, "of a newer broker"],
  ])("%i %i (%s) passes", (status, errorCode, description) => {
    const code = refusalCode({ status, errorCode, description });
    expect(code).toBe("JETSTREAM_UNAVAILABLE");
    expect(ERROR_CODES[code].retryable).toBe(true);
  });

  test.each([
    [503, 10076],
    [503, 10039],
  ])("%i %i says that JetStream is not here", (status, errorCode) => {
    expect(refusalCode(refusal(status, errorCode))).toBe("NO_JETSTREAM");
    expect(storeRefusalCode(refusal(status, errorCode))).toBe("NO_JETSTREAM");
    expect(ERROR_CODES.NO_JETSTREAM.retryable).toBe(false);
  });

  test.each([
    [400, 10002, "resource limits exceeded for account"],
    [503, 10023, "insufficient resources"],
    [500, 10028, "insufficient memory resources available"],
    [500, 10047, "insufficient storage resources available"],
    [400, 10005, "no suitable peers for placement, insufficient storage"],
    [400, 10027, "maximum number of streams reached"],
  ])(
    "%i %i (%s) is lack of storage, which an existing stream may get again",
    (status, errorCode, description) => {
      expect(refusalCode({ status, errorCode, description })).toBe("NO_SPACE");
      expect(storeRefusalCode({ status, errorCode, description })).toBe("JOURNAL_FULL");
    },
  );

  test.each([
    ["maximum bytes exceeded", "JOURNAL_FULL"],
    ["write /d/5.blk: no space left on device", "JOURNAL_FULL"],
    ["no message cache", "JOURNAL_FAULT"],
    ["write 5.blk: input/output error", "JOURNAL_FAULT"],
  ])("of a store that says %s is %s", (description, code) => {
    expect(refusalCode(refusal(503, 10077, description))).toBe(code);
    expect(storeRefusalCode(refusal(503, 10077, description))).toBe(code);
  });

  test.each([
    [400, 10003, "INTERNAL"],
    [500, 10052, "INTERNAL"],
    [503, 10036, "INTERNAL"],
    [499, 19_999, "INTERNAL"],
    [500, 10074, "BAD_VALUE"],
    [400, 10054, "TOO_LARGE"],
  ])("%i %i stays: %s", (status, errorCode, code) => {
    expect(refusalCode(refusal(status, errorCode))).toBe(code);
  });
});
