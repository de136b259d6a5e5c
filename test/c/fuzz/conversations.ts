/** Conversations between a trainer and a job, as fuzz inputs. */
import {
  ASYNC,
  applied,
  BATCHES,
  BROKEN_PIPE,
  begun,
  E3M0_BYTES,
  EARLY_REPLY,
  EMBEDDING,
  ENCODED_BYTES,
  ERROR,
  event,
  failed,
  finished,
  IN_FRAGMENT,
  INT8_BYTES,
  input,
  message,
  NOBODY,
  piece,
  pulled,
  RECONNECT,
  ROUNDS,
  refused,
  reply,
  SCRIPTED_JOIN,
  SSP,
  SYNC,
  SYNC_WITH_BACKUPS,
  status,
  stepped,
  stored,
  versions,
  W,
  W_BYTES,
} from "./events.ts";

/** Conversations that go well, and those that go wrong in the ways the protocol knows. */
export function conversations(): [string, Buffer][] {
  const declared = { parameters: [{ ...W, ready: false }] };
  const rejected = [1, 3, 0, "STALE_EPOCH", "expected epoch 2; received 1"];
  const replaced = { shard: 15, expected: { generation: 2, seq: 3 } };
  return [
    [
      "initialize",
      input(
        "initialize",
        ASYNC,
        begun(true),
        reply(declared),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        finished(),
      ),
    ],
    ["wait", input("initialize", ASYNC, begun(false), begun(false, { state: "ready" }))],
    [
      "create",
      input(
        "create",
        ASYNC,
        begun(true, declared),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        finished(),
        status(W),
        pulled(),
      ),
    ],
    ["look", input("look", ASYNC, status(), status(W, EMBEDDING), reply({ file: "model" }))],
    [
      "look-again",
      input("look", ASYNC, failed("BUSY"), event(NOBODY), status(), failed("NO_HOST")),
    ],
    ["get", input("get", ASYNC, status(W), pulled(), status(EMBEDDING), pulled(), pulled())],
    [
      "get-unknown",
      input("get", ASYNC, status(null), event(NOBODY), event(RECONNECT), status(EMBEDDING)),
    ],
    [
      "get-replaced",
      input(
        "get",
        ASYNC,
        status(W),
        failed("JOURNAL_REPLACED", replaced),
        failed("STALE_EPOCH"),
        status(W),
        pulled(),
      ),
    ],
    [
      "get-encoded",
      input("get-encoded", ASYNC, status(W), pulled({ encoding: "float16" }, ENCODED_BYTES)),
    ],
    [
      "get-grouped",
      input(
        "get-grouped",
        ASYNC,
        status(W),
        pulled({ encoding: "int8" }, INT8_BYTES),
        status(null),
        pulled({ encoding: "e3m0" }, E3M0_BYTES),
      ),
    ],
    [
      "get-wrong-code",
      input(
        "get-grouped",
        ASYNC,
        status(W),
        pulled({ encoding: "int8" }, Uint8Array.of(0, 0, 0x80, 0x3c, 0x80, 1)),
        status(null),
        pulled({ encoding: "e3m0" }, Uint8Array.of(0, 0, 0x80, 0xbc, 0x71)),
      ),
    ],
    [
      "send-grouped",
      input(
        "send-grouped",
        ASYNC,
        status(W),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        stored(15, 4),
        applied(15, [2, 4, 2]),
        status(EMBEDDING),
        stored(15, 5),
        stored(0, 3),
        applied(15, [3, 5, 3]),
        applied(0, [1, 3, 1]),
        message("outcome.15", { shard: 15, generation: 2, session: 41, outcomes: [] }),
        stored(15, 6),
        stored(0, 4),
      ),
    ],
    [
      "send",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        stored(15, 4),
        stored(15, 5),
        applied(15, [2, 4, 2], [3, 5, 3]),
      ),
    ],
    [
      "send-refused",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        refused(503, 10077),
        stored(15, 3),
        applied(15, rejected),
        refused(400, 10054),
      ),
    ],
    [
      "send-asked",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        event(BROKEN_PIPE),
        event(NOBODY),
        stored(15, 3),
        message("outcome.15", { shard: 15, generation: 1, session: 41, outcomes: [[1, 3, 1]] }),
      ),
    ],
    [
      "send-rejoin",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        stored(15, 3),
        applied(15, [1, 3, 0, "REJOIN", "lease"]),
        reply({ session: 42, made: "now", shards: 16, leaseMs: 5000, maxPayloadBytes: 8388608 }),
        stored(15, 4),
      ),
    ],
    [
      "send-superseded",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        stored(15, 3),
        message("outcome.15", { error: { code: "SUPERSEDED", message: "newer", details: {} } }),
      ),
    ],
    [
      "send-denied",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        event(ERROR, 'Permissions Violation for Publish to "ps.mnist.shard.15.worker=2F1.op"'),
      ),
    ],
    [
      "rows",
      input(
        "send-rows",
        ASYNC,
        status(EMBEDDING),
        stored(15, 3),
        stored(0, 3),
        applied(15, [1, 3, 1]),
        applied(0, [1, 3, 1]),
      ),
    ],
    [
      "overwrite",
      input(
        "overwrite",
        ASYNC,
        status(W),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        stored(15, 4),
        applied(15, [2, 4, 2]),
      ),
    ],
    [
      "parts",
      input(
        "use-parts",
        ASYNC,
        status(EMBEDDING),
        pulled({}, W_BYTES.subarray(0, 4)),
        stored(0, 3),
        applied(0, [1, 3, 1]),
      ),
    ],
    [
      "get-many",
      input(
        "get-many",
        ASYNC + BATCHES,
        status(W, EMBEDDING),
        piece(0, [17], { kind: EARLY_REPLY }),
        piece(1, [18]),
        pulled({}, W_BYTES),
      ),
    ],
    [
      "get-many-repeated",
      input(
        "get-many",
        ASYNC + BATCHES,
        status(W, EMBEDDING),
        piece(1, [18], { kind: EARLY_REPLY }),
        failed("JOURNAL_REPLACED", { expected: { generation: 2, seq: 0 } }),
        pulled({}, W_BYTES),
        piece(0, [17, 18], { generation: 2 }),
      ),
    ],
    [
      "get-many-nobody",
      input("get-many", ASYNC + BATCHES, status(W, EMBEDDING), event(NOBODY), event(NOBODY)),
    ],
    [
      "get-many-denied",
      input(
        "get-many",
        ASYNC + BATCHES,
        status(W, EMBEDDING),
        event(ERROR, 'Permissions Violation for Publish to "ps.mnist.shard.15.worker=2F1.read"'),
        pulled(),
        pulled(),
      ),
    ],
    [
      "get-changes",
      input(
        "get-changes",
        ASYNC + BATCHES,
        status(W, EMBEDDING),
        piece(0, [17, 18]),
        pulled({}, W_BYTES),
        piece(0, [0, 19]),
        piece(0, [0]),
        piece(0, [0, 0]),
        piece(0, [18]),
      ),
    ],
    [
      "initialize-many",
      input(
        "initialize-many",
        ASYNC + BATCHES,
        begun(true),
        reply({ parameters: [W, EMBEDDING] }),
        stored(15, 3),
        stored(0, 3),
        applied(15, [1, 3, 1]),
        applied(0, [1, 3, 1]),
        reply({ parameters: [W, EMBEDDING] }),
      ),
    ],
    [
      "sync",
      input(
        "keep-step",
        SYNC,
        status(W),
        reply({ revision: 3 }),
        ...Array.from({ length: 16 }, () => stepped(0)),
        stepped(0),
        stored(15, 3),
        ...Array.from({ length: 16 }, (_, shard) => stored(shard, 9)),
      ),
    ],
    [
      "sync-backups",
      input(
        "keep-step",
        SYNC_WITH_BACKUPS,
        status(W),
        reply({ revision: 3 }),
        ...Array.from({ length: 17 }, () => stepped(1)),
      ),
    ],
    [
      "ssp",
      input("keep-step", SSP, status(W), reply({ revision: 3 }), failed("BUSY"), stored(15, 3)),
    ],
    [
      "rounds",
      input(
        "use-rounds",
        ROUNDS,
        status(IN_FRAGMENT),
        reply({ revision: 3 }),
        stored(15, 3),
        applied(15, [1, 3, 1]),
        status(IN_FRAGMENT),
        versions(["f", 1, true], ["other", 2, true]),
        failed("TIMEOUT"),
        versions(["f", 1, true]),
        pulled(),
        versions(["f", 1, true]),
      ),
    ],
    [
      "rounds-late",
      input(
        "use-rounds",
        ROUNDS,
        status(IN_FRAGMENT),
        reply({ revision: 3 }),
        stored(15, 3),
        applied(15, [1, 3, 0, "NOT_MEMBER", "out"]),
        reply({ revision: 4 }),
        stored(15, 4),
        applied(15, [2, 4, 0, "LATE", "late"]),
        status(IN_FRAGMENT),
        versions("f"),
        versions(),
      ),
    ],
  ];
}

/** What no host would say: each breaks one limit, and nothing else. */
export function excesses(): [string, Buffer][] {
  const w = (more: Record<string, unknown>) => status({ ...W, ...more });
  const layout = { elements: 2, blockElements: 2, blocks: 1, firstShard: 15, shards: 16 };
  const joined = { session: 41, made: "now", shards: 16, leaseMs: 5000, maxPayloadBytes: 8388608 };
  const join = (more: Record<string, unknown>) =>
    input("get", SCRIPTED_JOIN, reply({ ...joined, ...more }), status(W), pulled());
  const get = (...events: Buffer[]) => input("get", ASYNC, ...events);
  return [
    ["rank-33", get(w({ shape: [2, ...Array.from({ length: 40 }, () => 1)] }))],
    ["huge-shape", get(w({ shape: [2 ** 31, 2 ** 22], layout: { ...layout, elements: 2 ** 53 } }))],
    ["empty-shape", get(w({ shape: [0] }))],
    [
      "many-blocks",
      get(
        w({
          shape: [2 ** 32],
          layout: { ...layout, elements: 2 ** 32, blockElements: 1, blocks: 2 ** 32 },
        }),
      ),
    ],
    ["number-0", get(w({ firstNumber: 0 }), pulled())],
    ["number-2^32", get(w({ firstNumber: 2 ** 32 }), pulled())],
    ["number-absent", get(w({ firstNumber: undefined }), pulled())],
    [
      "numbers-beyond",
      get(
        w({ shape: [4], firstNumber: 2 ** 32 - 1, layout: { ...layout, elements: 4, blocks: 2 } }),
      ),
    ],
    ["shards-257", get(w({ layout: { ...layout, firstShard: 256, shards: 257 } }), pulled())],
    ["first-shard", get(w({ layout: { ...layout, firstShard: 16 } }), pulled())],
    ["long-name", get(status({ ...W, name: "w".repeat(2000) }))],
    ["many-parameters", get(status(...Array.from({ length: 300 }, () => null)))],
    ["short-data", get(status(W), pulled({}, Uint8Array.of(1, 2, 3, 4)))],
    [
      "join-shards-300",
      input(
        "keep-step",
        SCRIPTED_JOIN,
        reply({ ...joined, shards: 300, synchronization: { mode: "sync" } }),
        status(W),
        reply({ revision: 3 }),
      ),
    ],
    ["join-lease-0", join({ leaseMs: 0 })],
    [
      "answer-shard-300",
      input(
        "send-gradients",
        ASYNC,
        status(W),
        stored(15, 3),
        applied(300, [1, 3, 1]),
        applied(15, [1, 3, 1]),
      ),
    ],
    ...pieces().map(([name, wrong]): [string, Buffer] => [
      name,
      input("get-many", ASYNC + BATCHES, status(W, EMBEDDING), wrong, piece(0, [1, 1])),
    ]),
    ["ack-shard-300", input("send-gradients", ASYNC, status(W), stored(300, 3), stored(15, 3))],
  ];
}

/** Chunks that do not fit a request for two entries. */
function pieces(): [string, Buffer][] {
  return [
    ["piece-from-2", piece(2, [1])],
    ["piece-from-4096", piece(4096, [1])],
    ["piece-from-huge", piece(2 ** 53 - 1, [1])],
    ["piece-of-3", piece(0, [1, 1, 1])],
    ["piece-of-many", piece(0, new Array<number>(400).fill(0))],
    ["piece-claims-1", piece(0, [1, 1], { entries: 1 })],
    ["piece-claims-3", piece(0, [1, 1], { entries: 3 })],
    ["piece-claims-4097", piece(0, [1, 1], { entries: 4097 })],
    ["piece-claims-huge", piece(0, [1, 1], { entries: 2 ** 53 - 1 })],
    ["piece-claims-none", piece(0, [1, 1], { entries: 0 })],
    ["piece-claims-nothing", piece(0, [1, 1], { entries: undefined })],
    ["piece-without-a-version", piece(0, [1, 1], { bytes: -8 })],
    ["piece-without-a-byte", piece(0, [1, 1], { bytes: -1 })],
    ["piece-without-data", piece(0, [1, 1], { bytes: -16 })],
    ["piece-nan", piece(0, [Number.NaN, 1])],
    ["piece-infinite", piece(0, [Number.POSITIVE_INFINITY, 1])],
    ["piece-version-2^53", piece(0, [2 ** 53, 1])],
    ["piece-version-least", piece(0, [Number.MIN_VALUE, 1])],
    ["piece-of-none", piece(0, [])],
    ["piece-known", piece(0, [0, 1])],
    ["piece-short", piece(0, [1, 1], { bytes: 15 })],
    ["piece-long", piece(0, [1, 1], { bytes: 17 })],
    ["piece-of-nothing", piece(0, [1, 1], { bytes: 0 })],
    ["piece-negative", piece(0, [-1, 1])],
    ["piece-fraction", piece(0, [0.5, 1])],
    ["piece-generation-0", piece(0, [1, 1], { generation: 0 })],
    ["piece-seq-text", piece(0, [1, 1], { seq: "1" })],
    ["piece-more-number", piece(0, [1, 1], { more: 1 })],
  ];
}
