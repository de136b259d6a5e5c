// Proves what errors of nats.js mean to hosts: each is made as nats.js makes it, bare or in the cause
// of another, and the code is what decides whether it is tried again.
import { JetStreamApiError, JetStreamError } from "@nats-io/jetstream";
import {
  AuthorizationError,
  ClosedConnectionError,
  type NatsConnection,
  NoRespondersError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { PserverError } from "../../src/protocol/errors.ts";
import {
  fromBrokerError,
  fromStoreError,
  isWithoutJetStream,
  isWrongSequence,
  orNoJetStream,
} from "../../src/transport/broker-error.ts";

function api(code: number, err_code: number, description: string): JetStreamApiError {
  return new JetStreamApiError({ code, err_code, description });
}

const noResponders = new RequestError("", { cause: new NoRespondersError("$JS.API.INFO") });

describe("an error of nats.js", () => {
  test.each([
    ["nobody answers", noResponders, "JETSTREAM_UNAVAILABLE"],
    [
      "nobody answers the JetStream client",
      new Error("jetstream is not enabled", { cause: noResponders }),
      "JETSTREAM_UNAVAILABLE",
    ],
    ["no leader", api(503, 10008, "temporarily unavailable"), "JETSTREAM_UNAVAILABLE"],
    ["a consumer's end", new JetStreamError("heartbeats missed"), "JETSTREAM_UNAVAILABLE"],
    [
      "no JetStream for the account",
      new Error("x", { cause: api(503, 10039, "not enabled") }),
      "NO_JETSTREAM",
    ],
    ["no answer in time", new TimeoutError(), "TIMEOUT"],
    ["no answer to a request in time", new Error("x", { cause: new TimeoutError() }), "TIMEOUT"],
    ["a connection that was lost before the answer", new RequestError("disconnected"), "NO_BROKER"],
    ["a closed connection", new ClosedConnectionError(), "CLOSED"],
    ["refused credentials", new AuthorizationError("no"), "DENIED"],
    ["a full disk", api(503, 10077, "no space left on device"), "JOURNAL_FULL"],
    ["a full account", api(400, 10002, "exceeded"), "NO_SPACE"],
    ["anything else", new TypeError("x is undefined"), "INTERNAL"],
    ["what is no error", "text", "INTERNAL"],
  ])("for %s", (_what, error, code) => {
    const found = fromBrokerError(error, "doing", { shard: 1 });
    expect(found).toMatchObject({ code, details: { shard: 1 }, cause: error });
    expect(found.message).toMatch(/^doing: ./);
  });

  test("of storing says that a stream is full where one of making it says that there is no storage", () => {
    expect(fromStoreError(api(400, 10002, "exceeded"), "storing").code).toBe("JOURNAL_FULL");
  });

  test("of a broker that has used up its own limit says which limit that is, and no other does", () => {
    const full = fromStoreError(api(503, 10023, "insufficient resources"), "storing");
    expect(full.code).toBe("JOURNAL_FULL");
    expect(full.message).toMatch(/^storing: insufficient resources: .*max_file/);
    expect(fromStoreError(api(400, 10002, "exceeded"), "storing").message).toBe(
      "storing: exceeded",
    );
  });

  test("that is one of ours stays as it is, wrapped or not", () => {
    const own = new PserverError("BUSY", "later");
    expect(fromBrokerError(own, "doing")).toBe(own);
    expect(fromBrokerError(new Error("x", { cause: own }), "doing")).toBe(own);
  });

  test("of a write that another one overtook is known in both forms, and no other", () => {
    expect(isWrongSequence(api(400, 10071, "wrong last sequence: 7"))).toBe(true);
    expect(isWrongSequence(api(400, 10164, "wrong last sequence"))).toBe(true);
    expect(isWrongSequence(api(503, 10077, "x"))).toBe(false);
  });
});

test.each([
  ["a single broker that has it", { jetstream: true }, false],
  ["a single broker that has none", {}, true],
  ["a broker of a cluster that has it", { jetstream: true, cluster: "c" }, false],
  ["a broker of a cluster that has none itself", { cluster: "c" }, false],
  ["no broker yet", undefined, false],
])("JetStream is absent or not: %s", (_what, info, absent) => {
  const connection = { info } as Pick<NatsConnection, "info">;
  expect(isWithoutJetStream(connection)).toBe(absent);
  const silent = new PserverError("JETSTREAM_UNAVAILABLE", "nobody answers");
  const code = absent ? "NO_JETSTREAM" : "JETSTREAM_UNAVAILABLE";
  expect(orNoJetStream(silent, connection)).toMatchObject({ code, message: "nobody answers" });
  const denied = new PserverError("DENIED", "no");
  expect(orNoJetStream(denied, connection)).toBe(denied);
});
