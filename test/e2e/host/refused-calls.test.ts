// Proves that every call of a client which a real host or the client itself must refuse ends in a
// typed error that names what was expected and what came, changes nothing, and leaves the host
// serving: each case ends with the values as they were and one more update that counts once.
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Client, TensorLike } from "../../../src/client/index.ts";
import {
  decodeMessage,
  encodeMessage,
  JobSubjects,
  throwIfError,
} from "../../../src/protocol/index.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { TestJob } from "../../support/host.ts";

/** 33 emoji take 396 bytes once escaped, 16 take 192. */
const UNICODE = [
  "ä ö.ü",
  "a.b*c>",
  "权重/层:0",
  "\u0000\n",
  "\uFEFFbom",
  "🙂".repeat(16),
  "__proto__",
];
const TOO_LONG = ["x".repeat(10_000), "x".repeat(201), "🙂".repeat(33)];

const subjects = new JobSubjects("j");
let job: TestJob;
let client: Client;
const good = new Float32Array(4);

beforeAll(async () => {
  job = await TestJob.start();
  await job.host();
  client = await job.trainer("good");
});

afterAll(() => job.remove());

/** Declares a parameter as a trainer that dies before it has stored the values does. */
async function declareOnly(name: string): Promise<void> {
  const inboxPrefix = subjects.inbox("good");
  const raw = await connect({ servers: job.broker.url, inboxPrefix });
  const parameters = [{ name, dtype: "float32", shape: [4], config: {} }];
  const body = encodeMessage({ session: client.session, epoch: 1, parameters });
  const { data } = await raw.request(subjects.lifecycle("good", "declare"), body);
  throwIfError(decodeMessage(data).fields);
  await raw.close();
}

/** The error of a call, which must fail. */
function refused(call: Promise<unknown>, code: string, ...texts: string[]): Promise<void> {
  return call.then(
    () => expect.unreachable(`expected ${code}`),
    (error: Error) => {
      expect(error).toMatchObject({ name: "PserverError", code });
      for (const text of texts) expect(error.message).toContain(text);
    },
  );
}

test("before and during the initialization", async () => {
  await refused(client.initParam("w", good), "NOT_SELECTED", "beginInit");
  await refused(client.finishInit(), "NOT_SELECTED");
  const early = await atDeadline("NOT_INITIALIZED", (timeoutMs) =>
    client.getParams(["w"], { timeoutMs }),
  );
  expect(early).toMatchObject({ message: expect.stringContaining("beginInit") });
  const calls: ((timeoutMs: number) => Promise<unknown>)[] = [
    (timeoutMs) => client.sendGrads({ w: good }, { timeoutMs }),
    (timeoutMs) => client.setParams({ w: good }, { timeoutMs }),
    (timeoutMs) => client.pushFull("w", good, 1, 1, { timeoutMs }),
  ];
  for (const call of calls) {
    expect(await atDeadline("NOT_INITIALIZED", call)).toMatchObject({ code: "NOT_INITIALIZED" });
  }

  expect(await client.beginInit()).toBe(true);
  for (const name of ["", "\ud800", ...TOO_LONG]) {
    await refused(client.initParam(name, good), "BAD_NAME", "expected", "received");
  }
  await refused(client.initParam("w", new Float32Array(0)), "BAD_SHAPE", "received");
  await refused(
    client.initParam("w", { dtype: "float32", shape: [3], data: good }),
    "BAD_LENGTH",
    "3",
    "4",
  );
  await refused(client.initParam("w", Float32Array.of(Number.NaN)), "NON_FINITE", '"w"');
  await refused(client.initParam("w", good, { learningRate: Number.NaN }), "BAD_CONFIG");
  for (const name of UNICODE) await client.initParam(name, Int32Array.of(name.length));
  await client.initParam("w", good, { learningRate: 1 });
  await refused(
    client.initParam("w", new Float64Array(4), { learningRate: 1 }),
    "BAD_CONFIG",
    "float32",
    "float64",
  );
  await client.initParam("wild", new Float32Array(2), { learningRate: 1, allowNonFinite: true });
  await client.initParam("steps", Int32Array.of(7));

  await declareOnly("late");
  await refused(client.finishInit(), "INCOMPLETE", '"late" block 0');
  await client.initParam("late", good);
  await client.finishInit();
  const names = (await client.listParams()).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining([...UNICODE, "w", "wild", "steps"]));
  for (const name of UNICODE) {
    await client.setParams(new Map([[name, Int32Array.of(-name.length)]]));
    expect((await client.pullFull(name)).data).toEqual(Int32Array.of(-name.length));
  }
});

describe("once initialized", () => {
  let before: readonly unknown[];
  const values = async (): Promise<unknown[]> =>
    (await client.getParams(["w", "steps"])).map(({ data }) => data);

  beforeEach(async () => {
    before = await values();
    return async () => {
      expect(await values()).toEqual(before);
      await client.sendGrads({ w: new Float32Array(4).fill(-1) });
      expect((await values())[0]).toEqual((before[0] as Float32Array).map((value) => value + 1));
    };
  });

  test("unknown and impossible names, empty lists", async () => {
    await refused(client.getParams(["w", "nope"]), "UNKNOWN_PARAMETER", '"nope"');
    await refused(client.sendGrads({ w: good, nope: good }), "UNKNOWN_PARAMETER", '"nope"');
    await refused(client.setParams({ nope: good }), "UNKNOWN_PARAMETER", '"nope"');
    await refused(client.pushFull("nope", good, 1, 1), "UNKNOWN_PARAMETER", '"nope"');
    for (const name of ["", "\ud800", ...TOO_LONG]) {
      await refused(client.pullFull(name), "BAD_NAME", "expected", "received");
      await refused(client.sendGrads({ [name]: good }), "BAD_NAME");
      await refused(client.createIfNotAlreadyCreated(name, good), "BAD_NAME");
    }
    await refused(client.getParams([]), "EMPTY");
    await refused(client.sendGrads({}), "EMPTY");
    await refused(client.setParams(new Map()), "EMPTY");
  });

  test("wrong types, lengths, shapes and numbers", async () => {
    const calls = (tensor: TensorLike): Promise<unknown>[] => [
      client.sendGrads({ w: tensor }),
      client.setParams({ w: tensor }),
      client.pushFull("w", tensor, 1, 1),
      client.createIfNotAlreadyCreated("w", tensor),
    ];
    const cases: [TensorLike, string, ...string[]][] = [
      [new Float64Array(4), "BAD_DTYPE", "float32", "float64"],
      [new Float32Array(3), "BAD_SHAPE", "4", "3"],
      [{ dtype: "float32", shape: [2, 2], data: good }, "BAD_SHAPE", "[4]", "[2,2]"],
      [{ dtype: "float32", shape: [4], data: new Float32Array(5) }, "BAD_LENGTH", "4", "5"],
      [{ dtype: "float32", shape: [4], data: new Float64Array(4) }, "BAD_DTYPE", "Float64Array"],
    ];
    for (const [tensor, code, ...texts] of cases) {
      for (const call of calls(tensor)) await refused(call, code, ...texts);
    }
    await refused(client.sendGrads({ steps: Int32Array.of(1) }), "UNSUPPORTED", "int32");
    await refused(client.sendGrads({ w: good }, { learningRate: Number.NaN }), "BAD_VALUE", "NaN");
    await refused(client.pushFull("w", good, Number.POSITIVE_INFINITY, 1), "BAD_VALUE", "alpha");
  });

  test("NaN and infinities, unless the parameter allows them", async () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const odd = Float32Array.of(0, 0, 0, value);
      await refused(client.sendGrads({ w: odd }), "NON_FINITE", '"w"');
      await refused(client.setParams({ w: odd }), "NON_FINITE", '"w"');
      await refused(client.pushFull("w", odd, 1, 1), "NON_FINITE", '"w"');
      await client.setParams({ wild: new Float32Array(2) });
      await client.sendGrads({ wild: Float32Array.of(1, value) });
      expect((await client.pullFull("wild")).data).toEqual(Float32Array.of(-1, -value));
    }
  });

  test("an initialization after the end of it", async () => {
    expect(await client.beginInit()).toBe(false);
    await refused(client.initParam("w", good), "NOT_SELECTED");
    await refused(client.finishInit(), "NOT_SELECTED");
  });

  test("a second process under the same id: the first is told, the second continues", async () => {
    // The answer to the renewal of its lease may tell the first before the shard does: then others.
    let byShard = false;
    for (let pair = 1; !byShard && pair <= 10; pair++) {
      const first = await job.trainer(`twin-${pair}`);
      await using second = await job.trainer(`twin-${pair}`);
      // A shard knows a session from its first record there on.
      await second.sendGrads({ w: good });
      const push = first.sendGrads({ w: new Float32Array(4).fill(9) });
      const renewed = push.catch(({ message }: Error) => message.includes("a newer session"));
      byShard = !(await renewed);
      await refused(push, "SUPERSEDED", ...(byShard ? ["expected", "received"] : []));
      await refused(first.pullFull("w"), "SUPERSEDED", `"twin-${pair}"`);
      await second.sendGrads({ w: good });
    }
    expect(byShard).toBe(true);
  });
});
