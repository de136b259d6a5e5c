// Proves that the doctor does not wait for a broker of a cluster that is missing, however long it may wait for an answer:
// a stream that it asks for in vain, as one that was given to that broker, is reported as not checked, and asked to be
// removed. A process plays the cluster, because a real one decides for itself to whom it gives a stream.
import { afterEach, expect, test } from "vitest";
import { checkJetStream } from "../../../src/cli/commands/doctor.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { type FakeBroker, startFakeBroker } from "../../support/fake-broker.ts";
import { HANG_MS } from "../../support/limits.ts";

/** Much longer than a test may take. */
const PATIENCE_MS = 100 * HANG_MS;

const NO_LIMIT = { max_memory: -1, max_storage: -1, max_streams: -1, max_consumers: -1 };
const STORED = { memory: 0, storage: 0, reserved_memory: 0, reserved_storage: 0 };
const ANSWERS: Readonly<Record<string, object>> = {
  INFO: { type: "account", streams: 0, ...STORED, limits: NO_LIMIT },
  "STREAM.LIST": { type: "list", total: 0, offset: 0, limit: 256, streams: [] },
};

let broker: FakeBroker | undefined;
afterEach(() => broker?.close());

test("a stream that is not made is waited for no longer than seconds, and removed", async () => {
  broker = await startFakeBroker({
    info: { jetstream: true },
    answer: (subject) => {
      const answer = ANSWERS[subject.replace("$JS.API.", "")];
      return answer && JSON.stringify(answer);
    },
  });
  const settings = { servers: [`nats://127.0.0.1:${broker.port}`], timeoutMs: HANG_MS };
  const connection = await openConnection(settings, { name: "doctor", inboxPrefix: "_INBOX.d" });
  try {
    const checks = await checkJetStream(connection, "j", PATIENCE_MS);
    expect(checks.map(({ name, status }) => `${name}: ${status}`)).toEqual([
      "JetStream: ok",
      "file storage: ok",
      "memory storage: ok",
      "streams: ok",
      "broker's limit: skip",
      "journals: ok",
      "stream limits: ok",
    ]);
    expect(checks[4]?.message).toContain("TIMEOUT");
    expect(broker.received).toContain("$JS.API.STREAM.DELETE.PS_j_ROOM");
  } finally {
    await connection.close();
  }
});
