// Proves how a trainer keeps step: when it enters, what it waits for, in which order clocks follow
// gradients, and what becomes of late ones. The test plays the hosts on a fake connection.
import { describe, expect, onTestFinished, test } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { ClientParts } from "../../../src/client/client.ts";
import type { GradResult, StepPlace } from "../../../src/client/io/steps.ts";
import { JobSubjects, PserverError, type Synchronization } from "../../../src/protocol/index.ts";
import { StepHost } from "./step-host.ts";

const SYNC = { mode: "sync", trainers: 2, backups: 0, reduce: "mean" } as const;
const WITH_BACKUPS = { ...SYNC, backups: 1 } as const;
const SSP = { mode: "ssp", trainers: 2, staleness: 2 } as const;

async function start(
  synchronization: Synchronization,
): Promise<{ host: StepHost; parts: ClientParts }> {
  const host = new StepHost(synchronization);
  const parts = new ClientParts({
    wire: host,
    subjects: new JobSubjects("j"),
    trainer: "t",
    fail: (error) => {
      throw error;
    },
  });
  onTestFinished(() => {
    parts.session.stop();
    parts.sender.close();
  });
  await parts.session.join(deadline());
  return { host, parts };
}

function deadline(timeoutMs = 10_000): Deadline {
  const made = Deadline.start("sendGrads", { timeoutMs });
  onTestFinished(() => made.dispose());
  return made;
}

/** Gradients that are sent when the test says so. */
function heldGradients(
  parts: ClientParts,
  options: { shards?: number[]; endStep?: boolean } = {},
): { places: StepPlace[]; sent: (late?: number) => void; done: Promise<GradResult> } {
  const { shards = [0], endStep = true } = options;
  const places: StepPlace[] = [];
  let sent: (late?: number) => void = () => {};
  const sending = new Promise<{ late: number }>((resolve) => {
    sent = (late = 0) => resolve({ late });
  });
  const done = parts.steps.gradients({ shards, endStep }, deadline(), (place) => {
    places.push(place);
    return sending;
  });
  return { places, sent, done };
}

async function oneStep(parts: ClientParts, late = 0): Promise<StepPlace | undefined> {
  const { places, sent, done } = heldGradients(parts);
  sent(late);
  await done;
  return places[0];
}

test("an asynchronous job knows no steps", async () => {
  const { host, parts } = await start({ mode: "async" });
  expect(await oneStep(parts)).toEqual({ step: undefined, countsLate: false });
  await parts.steps.endStep(deadline());
  await parts.steps.exit(deadline());
  expect(host.asked).toEqual(["join"]);
  expect(host.clocks).toEqual([]);
  expect(parts.steps.readStep).toBeUndefined();
});

test("the first gradient enters; clocks go to every shard after the gradients", async () => {
  const { host, parts } = await start(SYNC);
  const { places, sent, done } = heldGradients(parts);
  await host.settle();
  expect(places).toEqual([{ step: 1, countsLate: true }]);
  expect(host.asked).toEqual(["join", "enter", "step 0 0", "step 1 0"]);
  expect(host.clocks).toEqual([]);
  sent();
  expect(await done).toEqual({ lateBlocks: 0 });
  expect(host.clocks).toEqual([
    { shard: 0, step: 1 },
    { shard: 1, step: 1 },
  ]);
  expect(parts.steps.ended).toBe(1);
  expect(parts.steps.readStep).toBe(1);
});

test("a gradient waits until the previous step has closed in its shards", async () => {
  const { host, parts } = await start(SYNC);
  await oneStep(parts);
  const { places, sent, done } = heldGradients(parts, { shards: [1, 1] });
  await host.settle();
  expect(places).toEqual([]);
  expect(host.asked.slice(4)).toEqual(["step 1 1"]);
  host.close(1, 0);
  await host.settle();
  expect(places).toEqual([]);
  host.close(1, 1);
  await host.settle();
  expect(places).toEqual([{ step: 2, countsLate: false }]);
  sent();
  await done;
  expect(host.clocks.slice(2)).toEqual([
    { shard: 0, step: 2 },
    { shard: 1, step: 2 },
  ]);
});

test("after a read that waited for the step the gradient need not ask", async () => {
  const { host, parts } = await start(SYNC);
  await oneStep(parts);
  parts.steps.noteClosed(0, 1);
  expect(await oneStep(parts)).toEqual({ step: 2, countsLate: false });
  expect(host.asked.slice(4)).toEqual([]);
});

test("a step of several calls ends when all their gradients have been sent", async () => {
  const { host, parts } = await start(SYNC);
  const first = heldGradients(parts, { endStep: false });
  const second = heldGradients(parts, { endStep: false, shards: [1] });
  const ending = parts.steps.endStep(deadline());
  const next = heldGradients(parts);
  await host.settle();
  expect([...first.places, ...second.places].map(({ step }) => step)).toEqual([1, 1]);
  first.sent();
  await host.settle();
  expect(host.clocks).toEqual([]);
  second.sent();
  await ending;
  expect(host.clocks.map(({ step }) => step)).toEqual([1, 1]);
  host.close(1);
  await host.settle();
  expect(next.places.map(({ step }) => step)).toEqual([2]);
  next.sent();
  await Promise.all([first.done, second.done, next.done]);
  expect(parts.steps.ended).toBe(2);
});

test("calls at the same time take one step after the other", async () => {
  const { host, parts } = await start(SYNC);
  const [first, second] = [heldGradients(parts), heldGradients(parts)];
  second.sent();
  await host.settle();
  expect(second.places).toEqual([]);
  first.sent();
  host.close(1);
  await Promise.all([first.done, second.done]);
  expect(second.places[0]?.step).toBe(2);
});

test("a trainer that enters late begins at the largest closed step, and tells every shard at once", async () => {
  const { host, parts } = await start(SYNC);
  host.close(6, 0);
  host.close(7, 1);
  const { places, sent, done } = heldGradients(parts, { shards: [1] });
  await host.settle();
  expect(host.clocks).toEqual([
    { shard: 0, step: 7 },
    { shard: 1, step: 7 },
  ]);
  expect(places).toEqual([{ step: 8, countsLate: true }]);
  sent();
  await done;
});

test("with backups, a late trainer continues at the step of the others", async () => {
  const { host, parts } = await start(WITH_BACKUPS);
  expect(await oneStep(parts)).toEqual({ step: 1, countsLate: true });
  host.close(4);
  const { places, sent, done } = heldGradients(parts);
  sent();
  await done;
  expect(places).toEqual([{ step: 5, countsLate: true }]);
  expect(host.clocks.map(({ step }) => step)).toEqual([1, 1, 4, 4, 5, 5]);
});

test("with backups, a late block makes the next gradient ask for the step of the others", async () => {
  const { host, parts } = await start(WITH_BACKUPS);
  await oneStep(parts);
  parts.steps.noteClosed(0, 1);
  const late = heldGradients(parts);
  late.sent(3);
  expect(await late.done).toEqual({ lateBlocks: 3 });
  expect(late.places[0]?.step).toBe(2);
  host.close(5);
  expect((await oneStep(parts))?.step).toBe(6);
});

test("in a job with staleness gradients wait for nothing, and reads only for values that are too old", async () => {
  const { host, parts } = await start(SSP);
  for (const expected of [undefined, undefined, 1, 2]) {
    expect(await oneStep(parts)).toMatchObject({ step: undefined });
    expect(parts.steps.readStep).toBe(expected);
  }
  expect(host.asked).toEqual(["join", "enter", "step 0 0", "step 1 0"]);
  expect(host.clocks.map(({ step }) => step)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
});

test("an error leaves the step open; the clock can be sent again", async () => {
  const { host, parts } = await start(SYNC);
  const failing = parts.steps.gradients({ shards: [0], endStep: true }, deadline(), () =>
    Promise.reject(new PserverError("NON_FINITE", "no")),
  );
  await expect(failing).rejects.toMatchObject({ code: "NON_FINITE" });
  expect(host.clocks).toEqual([]);
  expect(parts.steps.ended).toBe(0);
  await parts.steps.endStep(deadline());
  expect(parts.steps.ended).toBe(1);
});

test("a trainer that is no member any more enters again, and the steps that it has ended stay ended", async () => {
  const { host, parts } = await start(SYNC);
  await oneStep(parts);
  host.close(1);
  host.rejections.push("NOT_MEMBER");
  await parts.steps.endStep(deadline());
  expect(parts.steps.ended).toBe(2);
  host.close(2);
  expect(await oneStep(parts)).toMatchObject({ step: 3 });
  expect(host.asked.filter((verb) => verb === "enter").length).toBe(2);
});

test("a step that has closed while its trainer was no member is over for it, too", async () => {
  const { host, parts } = await start(SYNC);
  const { sent, done } = heldGradients(parts);
  await host.settle();
  host.rejections.push("NOT_MEMBER");
  host.close(4);
  sent();
  await done;
  expect(parts.steps.ended).toBe(4);
  // Shard 1 took the clock of the step that it had closed; both have no other.
  expect(host.clocks.map(({ step }) => step)).toEqual([1, 1, 4, 4].slice(0, host.clocks.length));
});

/** Gradients whose first sending is rejected; `applied` of them have been taken. */
function rejectedOnce(
  parts: ClientParts,
  code: "NOT_MEMBER" | "LATE",
  applied: readonly object[],
  meanwhile: () => void,
): { places: StepPlace[]; done: Promise<GradResult> } {
  const places: StepPlace[] = [];
  const done = parts.steps.gradients({ shards: [0], endStep: true }, deadline(), async (place) => {
    places.push(place);
    if (places.length > 1) return { late: 0 };
    meanwhile();
    throw new PserverError(code, "removed", { applied });
  });
  return { places, done };
}

describe.each(["NOT_MEMBER", "LATE"] as const)("gradients that get %s", (code) => {
  test("are sent again in the step that is open then, if none was taken", async () => {
    const { host, parts } = await start(SYNC);
    const { places, done } = rejectedOnce(parts, code, [], () => host.close(6));
    expect(await done).toEqual({ lateBlocks: 0 });
    expect(places.map(({ step }) => step)).toEqual([1, 7]);
    expect(parts.steps.ended).toBe(7);
  });

  test("are sent again in the same step, which counts no block twice", async () => {
    const { parts } = await start(SYNC);
    const { places, done } = rejectedOnce(parts, code, [{ parameter: "w" }], () => {});
    await done;
    expect(places).toEqual([
      { step: 1, countsLate: true },
      { step: 1, countsLate: true },
    ]);
  });

  test("fail if another step has taken a part of them, and the next call goes on", async () => {
    const { host, parts } = await start(SYNC);
    const taken = [{ parameter: "w" }];
    const { places, done } = rejectedOnce(parts, code, taken, () => host.close(6));
    await expect(done).rejects.toMatchObject({ code, details: { applied: taken } });
    expect(places).toHaveLength(1);
    expect(await oneStep(parts)).toMatchObject({ step: 7 });
  });

  test("fail if it happens again", async () => {
    const { parts } = await start(SYNC);
    let sendings = 0;
    const done = parts.steps.gradients({ shards: [0], endStep: true }, deadline(), async () => {
      sendings += 1;
      throw new PserverError(code, "removed");
    });
    await expect(done).rejects.toMatchObject({ code });
    expect(sendings).toBe(2);
    expect(parts.steps.readStep).toBeUndefined();
  });
});

test("a new session is no member until it has entered", async () => {
  const { host, parts } = await start(SYNC);
  await oneStep(parts);
  expect(parts.steps.readStep).toBe(1);
  await parts.session.join(deadline());
  expect(parts.steps.readStep).toBeUndefined();
  host.close(1, 0);
  const { places, sent, done } = heldGradients(parts);
  sent();
  await done;
  // Shard 1 has not closed step 1 yet, and knows nothing of what the last session ended.
  expect(host.clocks.map(({ step }) => step)).toEqual([1, 1, 1, 1, 2, 2]);
  expect(places[0]?.step).toBe(2);
});

test("leaving the steps ends the waiting of reads", async () => {
  const { host, parts } = await start(SYNC);
  await oneStep(parts);
  await parts.steps.exit(deadline());
  expect(host.asked.at(-1)).toBe("exit");
  expect(parts.steps.readStep).toBeUndefined();
});

test("a call that gives up its turn lets the next one in, and not before its time", async () => {
  const { host, parts } = await start(SYNC);
  const first = heldGradients(parts);
  const aborted = new AbortController();
  const limit = Deadline.start("sendGrads", { signal: aborted.signal });
  onTestFinished(() => limit.dispose());
  const second = parts.steps.endStep(limit);
  const third = heldGradients(parts);
  third.sent();
  await host.settle();
  aborted.abort();
  await expect(second).rejects.toMatchObject({ code: "ABORTED" });
  await host.settle();
  expect(third.places).toEqual([]);
  first.sent();
  host.close(1);
  await Promise.all([first.done, third.done]);
  expect(third.places[0]?.step).toBe(2);
});
