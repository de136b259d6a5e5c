// Proves that a sender tells what guards have done with its records: each counts once, and whoever keeps what rounding has
// left out of them is told, because that must not be made good.
import { expect, test } from "vitest";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { ack, answer, deadline, setUp, update } from "./outbox-rig.ts";

test("a record that a guard has clipped or set aside is no error, and one that it has rejected is", async () => {
  const { wire, sender, guarded } = setUp();
  const decided: readonly Partial<Outcome>[] = [
    {},
    { guard: { action: "clip", norm: 8, limit: 2 } },
    { guard: { action: "set-aside", norm: 8, limit: 2 } },
    { code: "GUARDED", message: "a norm of at most 2" },
    { code: "LATE", message: "late" },
  ];
  const told: unknown[] = [];
  for (const [i, outcome] of decided.entries()) {
    const sent = sender.send([update(1)], { deadline: deadline() }).catch(({ code }) => code);
    ack(wire, wire.published[i], i + 1);
    for (let copy = 0; copy < 2; copy++) {
      answer(wire, [{ n: i + 1, seq: i + 1, version: 0, ...outcome }], 1);
    }
    told.push(await sent);
  }
  expect(told.slice(3)).toEqual(["GUARDED", "LATE"]);
  expect(told.slice(0, 3).every((each) => typeof each === "object")).toBe(true);
  expect(sender.counts).toMatchObject({ clipped: 1, setAside: 1 });
  expect(guarded()).toBe(3);
});

test("what a guard has done is told also where stored is enough", async () => {
  const { wire, sender, guarded } = setUp();
  const sent = sender.send([update(1)], { deadline: deadline(), stored: true });
  ack(wire, wire.published[0], 1);
  await sent;
  answer(wire, [{ n: 1, seq: 1, version: 0, guard: { action: "clip", norm: 8, limit: 2 } }], 1);
  expect(sender.counts).toMatchObject({ clipped: 1 });
  expect(guarded()).toBe(1);
});
