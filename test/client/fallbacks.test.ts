// Proves what a client does when a shard has fallen back: it tells its application, names the versions it had
// read no more, and has left the steps of the job; and that a journal replaced without a loss changes none of
// this. The client's parts are as they are, on a fake connection; the test plays the shard's owner.
import { expect, onTestFinished, test } from "vitest";
import { ClientParts } from "../../src/client/client.ts";
import {
  decodeMessage,
  draftPullReply,
  encodeAnswers,
  type Fallback,
  JobSubjects,
  parseOutcomeRequest,
  sealMessage,
} from "../../src/protocol/index.ts";
import { toHex } from "../protocol/vector-json.ts";
import type { FakeWire } from "../support/fake-wire.ts";
import { answer, applied, header, watch } from "./io/outbox-rig.ts";
import { StepHost } from "./io/step-host.ts";
import { deadline, type JobWire, joinedClient, parameter, settle } from "./joined-client.ts";

/** A client that has read version 7 of "w" from record 4 of the first journal. */
async function afterRead(): Promise<Awaited<ReturnType<typeof joinedClient>>> {
  const client = await joinedClient([parameter("w")]);
  const { wire, parts } = client;
  const read = watch(parts.puller.pull(["w"], deadline()));
  await settle();
  const position = { generation: 1, seq: 4 };
  const reply = draftPullReply({ epoch: 1, dtype: "float32", ...position, version: 7 }, 16);
  wire.deliver(wire.taken()[0]?.reply ?? "", sealMessage(reply));
  await settle();
  expect(read.state).toBe("done");
  return client;
}

/** What the next gradient names as the version it was made from, whose record the shard applies. */
async function seenOfNext({
  wire,
  parts,
}: {
  wire: JobWire;
  parts: ClientParts;
}): Promise<unknown> {
  const grads = { w: Float32Array.of(1, 1, 1, 1) };
  const sent = watch(parts.updates.sendGrads(grads, deadline(), {}));
  await settle();
  const { n, seen } = header(wire.taken()[0]);
  answer(wire, [applied(Number(n))]);
  await settle();
  expect(sent.state).toBe("done");
  return seen;
}

/** The shard answers out of a journal of generation 2, and then what it did not keep of the first. */
async function replaceJournal(
  wire: FakeWire,
  lost: readonly Pick<Fallback, "from" | "to">[],
  session = 5,
): Promise<void> {
  const next = { shard: 0, generation: 2, session, outcomes: [] };
  wire.published.splice(0);
  wire.deliver(`${wire.inbox}.applied`, encodeAnswers({ ...next, outcomes: [applied(1)] }));
  await settle();
  const asked = wire.published.filter(({ subject }) => subject === "ps.j.shard.0.t.outcome");
  expect(asked).toHaveLength(1);
  expect(parseOutcomeRequest(header(asked[0]))).toMatchObject({ numbers: [], generation: 1 });
  const fallbacks = lost.map((each) => ({ generation: 1, ...each }));
  wire.deliver(asked[0]?.reply ?? "", encodeAnswers({ ...next, fallbacks }));
  await settle();
  wire.published.splice(0);
}

test("a gradient names the version that was read, and none after the shard has undone versions", async () => {
  const client = await afterRead();
  expect(await seenOfNext(client)).toBe(7);
  await replaceJournal(client.wire, [{ from: 3, to: 6 }]);
  expect(client.fallbacks).toEqual([{ shard: 0, generation: 1, lost: { from: 3, to: 6 } }]);
  expect(await seenOfNext(client)).toBeUndefined();
});

/** The encoded elements of the next gradient of "w", whose record the shard applies. */
async function encodedNext({ wire, parts }: { wire: JobWire; parts: ClientParts }) {
  const grads = { w: Float32Array.of(1, 0.7, 0.4, -0.3) };
  const sent = watch(parts.updates.sendGrads(grads, deadline(), { encoding: "e3m0" }));
  await settle();
  const [message] = wire.taken();
  const { n } = header(message);
  const elements = toHex(decodeMessage(message?.bytes ?? new Uint8Array(0)).data);
  answer(wire, [applied(Number(n))]);
  await settle();
  expect(sent.state).toBe("done");
  return elements;
}

test("what rounding left out of gradients is forgotten after the shard has undone some of them", async () => {
  const client = await afterRead();
  const first = await encodedNext(client);
  const second = await encodedNext(client);
  expect(second).not.toBe(first);
  await replaceJournal(client.wire, [{ from: 3, to: 6 }]);
  expect(await encodedNext(client)).toBe(first);
});

test("what rounding left out of gradients stays where a journal was replaced without a loss", async () => {
  const client = await afterRead();
  const first = await encodedNext(client);
  await replaceJournal(client.wire, [{ from: 5, to: 4 }]);
  expect(await encodedNext(client)).not.toBe(first);
});

test("a journal that was replaced without a loss leaves the versions as they are", async () => {
  const client = await afterRead();
  await replaceJournal(client.wire, [{ from: 5, to: 4 }]);
  expect(client.fallbacks).toEqual([]);
  expect(await seenOfNext(client)).toBe(7);
});

test("each record that was put aside is told, and what the client has seen behind them counts as kept", async () => {
  const client = await afterRead();
  const aside = [1, 3].map((seq) => ({ from: seq, to: seq }));
  await replaceJournal(client.wire, [...aside, { from: 9, to: 8 }]);
  expect(client.fallbacks).toEqual(aside.map((lost) => ({ shard: 0, generation: 1, lost })));
});

test("a trainer in steps has left them after a shard has fallen back: its reads wait for none", async () => {
  const host = new StepHost({ mode: "sync", trainers: 2, backups: 0, reduce: "mean" }, 1);
  const parts = new ClientParts({
    ...{
      wire: host,
      control: host.control,
      subjects: new JobSubjects("j"),
      trainer: "t",
      onFallback: () => undefined,
    },
    fail: (error) => {
      throw error;
    },
  });
  onTestFinished(() => parts.stop());
  await parts.session.join(deadline());
  await parts.steps.gradients({ shards: [0], endStep: true }, deadline(), async () => ({
    late: 0,
  }));
  await settle();
  expect(parts.steps.readStep).toBe(1);
  await replaceJournal(host, [{ from: 1, to: 6 }], 1);
  expect(parts.steps.readStep).toBeUndefined();
});
