// Proves the requests and replies of the lifecycle: each is read as it was encoded, and one with a
// wrong entry is refused with an error that names the entry.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, type Fields } from "../../src/protocol/codec.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { DTYPES, type Dtype } from "../../src/protocol/dtypes.ts";
import { computeLayout } from "../../src/protocol/layout.ts";
import {
  type Declaration,
  type ParameterInfo,
  parseBeginReply,
  parseCreateRequest,
  parseDeclareRequest,
  parseFinishRequest,
  parseJoinReply,
  parseJoinRequest,
  parseParameterInfo,
  parseParameters,
  parseSessionRequest,
  parseStatusReply,
  parseStatusRequest,
  parseTarget,
} from "../../src/protocol/messages/lifecycle-messages.ts";
import { counter, finiteNumber, positive, validName } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";
import { testRefusals } from "./refused-fields.ts";

/** The entries as they are received. */
function sent(fields: object): Fields {
  return decodeMessage(encodeMessage({ ...fields })).fields;
}

const declaration: fc.Arbitrary<Declaration> = fc.record({
  name: validName,
  dtype: fc.constantFrom(...(Object.keys(DTYPES) as Dtype[])),
  shape: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
  config: fc.oneof(
    fc.constant(toConfig()),
    finiteNumber.map((learningRate) => toConfig({ learningRate, allowNonFinite: true })),
  ),
});
const info: fc.Arbitrary<ParameterInfo> = fc
  .tuple(declaration, positive, fc.boolean(), fc.integer({ min: 1, max: 2 ** 31 }))
  .map(([declared, epoch, ready, firstNumber]) => {
    const layout = computeLayout({ ...declared, shards: 16, maxPayloadBytes: 1 << 23 });
    return { ...declared, epoch, ready, layout, firstNumber };
  });
const state = fc.constantFrom("uninitialized", "initializing", "ready");
const position = fc.record({ generation: positive, seq: counter });
const shardPosition = fc.record({ shard: fc.nat(255), generation: positive, seq: counter });

/** A kind of message, an arbitrary of it, and its reader. */
function comesBack<Message extends object>(
  what: string,
  messages: fc.Arbitrary<Message>,
  read: (fields: Fields) => unknown,
): void {
  test(`${what} comes back`, () => {
    fc.assert(
      fc.property(messages, (message) => {
        expect(read(sent(message))).toEqual(message);
      }),
      { numRuns: 50 },
    );
  });
}

comesBack("join", fc.record({ token: fc.string({ maxLength: 64 }) }), parseJoinRequest);
comesBack("a session", fc.record({ session: positive }), parseSessionRequest);
comesBack(
  "declare",
  fc.record({
    session: positive,
    epoch: positive,
    parameters: fc.array(declaration, { minLength: 1, maxLength: 5 }),
  }),
  parseDeclareRequest,
);
comesBack("create", fc.record({ session: positive, parameter: declaration }), parseCreateRequest);
comesBack(
  "finish",
  fc.record(
    {
      session: positive,
      epoch: positive,
      at: fc.array(shardPosition, { maxLength: 5 }),
      parameter: validName,
    },
    { requiredKeys: ["session", "epoch", "at"] },
  ),
  parseFinishRequest,
);
comesBack(
  "abort",
  fc.record({ epoch: positive, parameter: validName }, { requiredKeys: ["epoch"] }),
  parseTarget,
);
comesBack("status by names", fc.record({ names: fc.array(validName) }), parseStatusRequest);
comesBack(
  "status by pages",
  fc.record(
    { limit: fc.integer({ min: 1, max: 256 }), after: validName },
    { requiredKeys: ["limit"] },
  ),
  parseStatusRequest,
);
comesBack(
  "the reply to join",
  fc.record({
    session: positive,
    made: fc.string({ maxLength: 39 }),
    shards: fc.integer({ min: 1, max: 256 }),
    leaseMs: positive,
    journal: fc.constantFrom("file", "memory"),
    synchronization: fc.constantFrom(
      { mode: "async" },
      { mode: "sync", trainers: 4, backups: 1, reduce: "sum" },
      { mode: "ssp", trainers: 2, staleness: 3 },
    ),
    maxPayloadBytes: positive,
  }),
  parseJoinReply,
);
comesBack(
  "the reply to begin",
  fc.record({ selected: fc.boolean(), state, epoch: counter, by: validName }),
  parseBeginReply,
);
comesBack("a parameter", info, parseParameterInfo);
comesBack(
  "the reply to status",
  fc.record({
    state,
    epoch: counter,
    by: validName,
    shards: fc.integer({ min: 1, max: 256 }),
    parameters: fc.array(fc.option(info), { maxLength: 4 }),
    more: fc.boolean(),
    at: fc.array(position, { maxLength: 4 }),
  }),
  parseStatusReply,
);

const DECLARED = { name: "w", dtype: "float32", shape: [2], config: {} };
const WRONG_DECLARATIONS = [
  ["name", undefined],
  ["name", 7],
  ["name", "", "BAD_NAME"],
  ["name", "\ud800", "BAD_NAME"],
  ["name", "w".repeat(201), "BAD_NAME"],
  ["dtype", "float8", "BAD_DTYPE"],
  ["dtype", undefined, "BAD_DTYPE"],
  ["shape", undefined],
  ["shape", [0], "BAD_SHAPE"],
  ["shape", new Array(33).fill(1), "BAD_SHAPE"],
  ["config", undefined],
  ["config", { momentum: 1 }, "BAD_CONFIG"],
] as const;

describe("a declaration", () => {
  testRefusals(
    DECLARED,
    (fields) => parseDeclareRequest({ session: 1, epoch: 1, parameters: [DECLARED, fields] }),
    WRONG_DECLARATIONS,
  );
});

describe("create", () => {
  testRefusals(
    DECLARED,
    (fields) => parseCreateRequest({ session: 1, parameter: fields }),
    WRONG_DECLARATIONS,
  );

  test("is refused without a parameter", () => {
    expect(codeOf(() => parseCreateRequest({ session: 1 }))).toBe("BAD_MESSAGE");
  });
});

describe("declare", () => {
  testRefusals(
    { session: 1, epoch: 1, parameters: [DECLARED] },
    parseDeclareRequest,
    [
      ["session", 0],
      ["epoch", 0],
      ["epoch", undefined],
      ["parameters", undefined],
      ["parameters", {}],
      ["parameters", new Array(257).fill(DECLARED)],
      ["parameters", [], "EMPTY"],
    ],
    { parameters: "parameter" },
  );
});

describe("join", () => {
  testRefusals({ token: "t" }, parseJoinRequest, [
    ["token", undefined],
    ["token", 7],
    ["token", "t".repeat(65)],
  ]);
});

describe("finish", () => {
  const at = { shard: 1, generation: 1, seq: 4 };
  testRefusals({ session: 1, epoch: 1, at: [at] }, parseFinishRequest, [
    ["session", undefined],
    ["epoch", 0],
    ["parameter", 7],
    ["parameter", "", "BAD_NAME"],
    ["at", undefined],
    ["at", [7]],
    ["at", new Array(257).fill(at)],
  ]);

  test.each(["shard", "generation", "seq"])("is refused with a position without %s", (key) => {
    const fields = { session: 1, epoch: 1, at: [{ ...at, [key]: undefined }] };
    expect(codeOf(() => parseFinishRequest(fields))).toBe("BAD_MESSAGE");
  });
});

describe("status", () => {
  testRefusals(
    {},
    parseStatusRequest,
    [
      ["names", "w"],
      ["names", [7]],
      ["names", [""], "BAD_NAME"],
      ["names", new Array(257).fill("w")],
      ["limit", 0],
      ["limit", 257],
    ],
    { names: "name" },
  );

  test("without names and limit asks for the job alone", () => {
    expect(parseStatusRequest({})).toEqual({});
  });
});

describe("the reply to join", () => {
  testRefusals(
    {
      ...{ session: 1, made: "now", shards: 16, leaseMs: 5000, journal: "file" },
      maxPayloadBytes: 1 << 20,
    },
    parseJoinReply,
    [
      ["session", 0],
      ["made", 5],
      ["made", "x".repeat(40)],
      ["shards", 0],
      ["shards", 257],
      ["leaseMs", 0],
      ["journal", "disk"],
      ["journal", undefined],
      ["maxPayloadBytes", undefined],
    ],
  );
});

describe("the reply to begin", () => {
  testRefusals({ selected: true, state: "ready", epoch: 1, by: "t" }, parseBeginReply, [
    ["selected", 1],
    ["state", "done"],
    ["state", undefined],
    ["epoch", -1],
    ["by", undefined],
  ]);
});

describe("the reply to status", () => {
  testRefusals(
    { state: "ready", epoch: 1, by: "t", shards: 1, parameters: [], more: false, at: [] },
    parseStatusReply,
    [
      ["state", 7],
      ["epoch", undefined],
      ["by", null],
      ["shards", 0],
      ["parameters", undefined],
      ["parameters", [7]],
      ["more", "no"],
      ["at", undefined],
      ["at", [[1, 2]]],
    ],
    { parameters: "parameter" },
  );

  test("has nil where a name is unknown", () => {
    expect(parseParameters({ parameters: [null, undefined] })).toEqual([null, null]);
  });
});

describe("a parameter", () => {
  const layout = { elements: 2, blockElements: 2, blocks: 1, firstShard: 0, shards: 1 };
  testRefusals({ ...DECLARED, epoch: 1, ready: true, layout }, parseParameterInfo, [
    ...WRONG_DECLARATIONS,
    ["epoch", 0],
    ["ready", "yes"],
    ["layout", undefined],
    ["layout", { ...layout, blocks: 2 }],
  ]);
});
