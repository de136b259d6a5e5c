// Proves what counts as an answer of JetStream: each kind of request has entries that its answer must have,
// an error of JetStream is an answer, and the refusal of anything else names the request, what was expected
// and what was received. Every end-to-end test proves that real brokers' answers pass.
import { describe, expect, test } from "vitest";
import { checkJetStreamAnswer } from "../../src/transport/jetstream.ts";

const STREAM = {
  created: "2026-01-01T00:00:00Z",
  config: { name: "S" },
  state: { messages: 1, bytes: 9, first_seq: 1, last_seq: 1, deleted: [3], subjects: { a: 1 } },
};
const LIMITS = { max_storage: -1, max_memory: 2 ** 63, max_streams: -1 };

const STREAM_NEEDS = ["created", "config", "config.name", "state", "state.bytes", "state.last_seq"];
const CONSUMER = { name: "C", stream_name: "S", config: {}, num_pending: 0 };

/** What JetStream answers to each kind of request, and what must not lack. */
const ANSWERS: readonly (readonly [string, object, readonly string[]])[] = [
  [
    "$JS.API.INFO",
    { streams: 1, storage: 9, memory: 0, limits: LIMITS },
    ["streams", "storage", "memory", "limits", "limits.max_streams"],
  ],
  ["$JS.API.STREAM.INFO.S", STREAM, STREAM_NEEDS],
  ["$JS.API.STREAM.CREATE.S", STREAM, STREAM_NEEDS],
  ["$JS.API.STREAM.UPDATE.S", STREAM, STREAM_NEEDS],
  ["$JS.API.STREAM.NAMES", { type: "names", total: 1, streams: ["S"] }, ["type", "total"]],
  ["$JS.API.STREAM.LIST", { type: "list", total: 1, streams: [STREAM] }, ["type", "total"]],
  [
    "$JS.API.STREAM.MSG.GET.S",
    { message: { seq: 1, subject: "a", data: "aGVsbG8=" } },
    ["message", "message.seq", "message.subject"],
  ],
  ["$JS.API.CONSUMER.CREATE.S.C", CONSUMER, Object.keys(CONSUMER)],
  ["$JS.API.CONSUMER.INFO.S.C", CONSUMER, Object.keys(CONSUMER)],
  ["$KV.B.key", { stream: "S", seq: 1 }, ["stream", "seq"]],
];

/** The answer with the entry at `path` put in, or left out for undefined. */
function having(answer: object, path: string, entry: unknown): object {
  const [key = "", ...below] = path.split(".");
  const inner = (answer as Record<string, object>)[key] ?? {};
  return { ...answer, [key]: below.length > 0 ? having(inner, below.join("."), entry) : entry };
}

const check = (subject: string, answer: unknown): void =>
  checkJetStreamAnswer(subject, new TextEncoder().encode(JSON.stringify(answer)));

const refusal = (expected = ""): unknown =>
  expect.objectContaining({ code: "BAD_MESSAGE", message: expect.stringContaining(expected) });

describe.each(ANSWERS)("the answer to %s", (subject, answer, needs) => {
  test("is taken as JetStream gives it, and so is an error", () => {
    check(subject, answer);
    check(subject, { error: { code: 404, err_code: 10059, description: "stream not found" } });
    check(subject, { error: {} });
  });

  test.each(needs)(
    "is refused without %s, or with another type there, and names the request",
    (path) => {
      expect(() => check(subject, having(answer, path, undefined))).toThrow(refusal(subject));
      expect(() => check(subject, having(answer, path, true))).toThrow(refusal(subject));
    },
  );

  test.each(["garbage", "", "null", "7", "[]", '{"error":7}', '{"error":{"code":"x"}}'])(
    "is not %j",
    (text) => {
      const bytes = new TextEncoder().encode(text);
      expect(() => checkJetStreamAnswer(subject, bytes)).toThrow(refusal("expected"));
    },
  );
});

test("a page may be empty, and what it lists is looked at", () => {
  check("$JS.API.STREAM.NAMES", { type: "names", total: 0, streams: null });
  const names = { type: "names", total: 1, streams: [7] };
  expect(() => check("$JS.API.STREAM.NAMES", names)).toThrow(refusal("name: expected text"));
  const list = { type: "list", total: 1, streams: [{ ...STREAM, config: null }] };
  expect(() => check("$JS.API.STREAM.LIST", list)).toThrow(refusal("config: expected a map"));
});

test("what changes something says whether it did", () => {
  check("$JS.API.STREAM.DELETE.S", { success: true });
  expect(() => check("$JS.API.STREAM.PURGE.S", { success: 1 })).toThrow(refusal("success"));
});

test("a message that is the answer itself is not parsed", () => {
  checkJetStreamAnswer("$JS.API.DIRECT.GET.S", Uint8Array.of(0xff));
});

test("a message that is not base64 is refused", () => {
  const answer = { message: { seq: 1, subject: "a", data: "a b" } };
  expect(() => check("$JS.API.STREAM.MSG.GET.S", answer)).toThrow(refusal("data: expected base64"));
});
