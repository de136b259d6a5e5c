// Proves what calls that change parameters refuse before anything is sent, when they are done, and that they
// look a parameter up again only after its epoch was refused. The client's parts are as they are, on a fake
// connection; the test plays the owner of the only shard.
import { describe, expect, test } from "vitest";
import type { Ack } from "../../../src/client/calls/calls.ts";
import type { ClientParts } from "../../../src/client/client.ts";
import type { ErrorCode } from "../../../src/protocol/index.ts";
import { ack, answer, applied, watch } from "../io/outbox-rig.ts";
import { deadline, joinedClient, parameter, settle } from "../joined-client.ts";

const ONES = Float32Array.of(1, 1, 1, 1);
const ADD = { alpha: 1, beta: 1 };

type Call = (parts: ClientParts, name: string, ack?: Ack) => Promise<unknown>;

const CALLS: readonly (readonly [string, Call])[] = [
  [
    "sendGrads",
    ({ updates }, name, ack) => updates.sendGrads({ [name]: ONES }, deadline(), { ack }),
  ],
  [
    "setParams",
    ({ updates }, name, ack) => updates.setParams({ [name]: ONES }, deadline(), { ack }),
  ],
  ["pushFull", ({ updates }, name, ack) => updates.pushFull(name, ONES, ADD, deadline(), { ack })],
  [
    "pushAsPart",
    ({ updates }, name, ack) => {
      const part = { name, tensor: Float32Array.of(1), indices: [[2]] };
      return updates.pushAsPart(part, ADD, deadline(), { ack });
    },
  ],
];

describe.each(CALLS)("%s", (_kind, call) => {
  test("is done when its record is stored, if that is what it waits for, and not before", async () => {
    const { wire, parts } = await joinedClient([parameter("w")]);
    const seen = watch(call(parts, "w", "stored"));
    await settle();
    expect(seen.state).toBe("pending");
    const [record, ...others] = wire.taken();
    ack(wire, record, 1);
    await settle();
    expect([seen.state, others]).toEqual(["done", []]);
  });

  test.each([
    ["if that is what it waits for", "applied"],
    ["by default", undefined],
  ] as const)(
    "is done when its record is applied, not when it is stored, %s",
    async (_when, until) => {
      const { wire, parts } = await joinedClient([parameter("w")]);
      const seen = watch(call(parts, "w", until));
      await settle();
      ack(wire, wire.taken()[0], 1);
      await settle();
      expect(seen.state).toBe("pending");
      answer(wire, [applied(1)]);
      await settle();
      expect(seen.state).toBe("done");
    },
  );

  test("refuses a parameter that is static, and sends nothing", async () => {
    const { wire, parts } = await joinedClient([parameter("w", { learningRate: 1, static: true })]);
    await expect(call(parts, "w")).rejects.toMatchObject({
      code: "STATIC",
      details: { parameter: "w" },
    });
    expect(wire.taken()).toEqual([]);
  });

  test.each<[ErrorCode, number]>([
    ["STALE_EPOCH", 2],
    ["NON_FINITE", 1],
  ])(
    "refused with %s, is followed by a call for which its parameter has been looked up %i times in all",
    async (code, times) => {
      const { wire, parts } = await joinedClient([parameter("w")]);
      const seen = watch(call(parts, "w"));
      await settle();
      answer(wire, [{ n: 1, seq: 1, version: 0, code, message: "refused" }]);
      await settle();
      expect(seen.error?.code).toBe(code);
      watch(call(parts, "w"));
      await settle();
      expect(wire.lookedUp).toEqual(Array.from({ length: times }, () => ["w"]));
    },
  );
});

test("one tensor of a call that is refused keeps all others from being sent", async () => {
  const { wire, parts } = await joinedClient([
    parameter("w"),
    parameter("fixed", { learningRate: 1, static: true }),
  ]);
  const grads = { w: ONES, fixed: ONES };
  const call = parts.updates.sendGrads(grads, deadline(), {});
  await expect(call).rejects.toMatchObject({ code: "STATIC", details: { parameter: "fixed" } });
  expect(wire.taken()).toEqual([]);
});

test("a learning rate that is none is refused before anything is asked or sent", async () => {
  const { wire, parts } = await joinedClient([parameter("w")]);
  const call = parts.updates.sendGrads({ w: ONES }, deadline(), { learningRate: Number.NaN });
  await expect(call).rejects.toMatchObject({ code: "BAD_VALUE" });
  expect([wire.taken(), wire.lookedUp]).toEqual([[], []]);
});
