// The sender without a broker: a test plays broker and host on a fake connection.
import { onTestFinished, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import { UpdateSender, type UpdateSource } from "../../../src/client/io/update-sender.ts";
import {
  decodeMessage,
  draftMessage,
  encodeAnswers,
  encodeMessage,
  type Fields,
  JobSubjects,
  type Outcome,
  type PserverError,
  sealMessage,
} from "../../../src/protocol/index.ts";
import { FakeWire, type Published } from "../../support/fake-wire.ts";

export const MIB = 1024 * 1024;
const subjects = new JobSubjects("j");

/**
 * A sender that has joined as session 5, its connection, which it knows to be fast, and what it tells; `onEnd` hears
 * that, too.
 */
export function setUp(onEnd: (sender: UpdateSender) => void = () => {}): {
  wire: FakeWire;
  sender: UpdateSender;
  positions: Positions;
  ended: PserverError[];
  /** How often it has told that guards have decided about its records. */
  guarded: () => number;
} {
  const wire = new FakeWire();
  const positions = new Positions({ journalReplaced: () => {} });
  const ended: PserverError[] = [];
  let guarded = 0;
  const sender: UpdateSender = UpdateSender.open({
    wire,
    subjects,
    trainer: "t",
    positions,
    onSessionEnd: (error) => {
      ended.push(error);
      onEnd(sender);
    },
    onGuarded: () => {
      guarded += 1;
    },
  });
  wire.listen({ reconnected: () => sender.reconnected() });
  sender.start(4);
  void sender.send([update(9, 0, MIB)], { deadline: deadline(), stored: true });
  ack(wire, wire.published[0], 1);
  wire.published.length = 0;
  sender.start(5);
  onTestFinished(() => sender.close());
  return { wire, sender, positions, ended, guarded: () => guarded };
}

/** An update of so many bytes for a shard. */
export function update(shard: number, index = 0, dataBytes = 8): UpdateSource {
  return {
    subject: `log.${shard}.${index}`,
    shard,
    topic: { kind: "blocks", blocks: [{ parameter: "p", index }] },
    blocks: 1,
    dataBytes,
    namesVersion: false,
    draft: (header) => encodeMessage({ ...header }),
  };
}

/** A gradient that names the version it was made from, unless its draft is to leave it out. */
export function seeing(version: number): UpdateSource {
  return {
    ...update(0),
    namesVersion: true,
    draft: (header, namesVersion) => {
      return encodeMessage({ ...header, ...(namesVersion ? { seen: version } : {}) });
    },
  };
}

/** An update whose message is large enough to get memory that is used again; what it gets goes to `taken`. */
export function largeUpdate(taken: ArrayBufferLike[]): UpdateSource {
  return {
    ...update(0),
    draft: (header, _namesVersion, allocate) => {
      const draft = draftMessage({ ...header }, 100_000, allocate);
      taken.push(draft.bytes.buffer);
      return sealMessage(draft);
    },
  };
}

/** Updates of one shard, in order. */
export function updates(shard: number, count: number, dataBytes?: number): UpdateSource[] {
  return Array.from({ length: count }, (_, index) => update(shard, index, dataBytes));
}

/** As many updates of each of so many shards: more may wait for outcomes than those of one shard. */
export function spread(shards: number, count: number, dataBytes: number): UpdateSource[] {
  return Array.from({ length: shards }, (_, shard) => updates(shard, count, dataBytes)).flat();
}

/** A deadline that is given up with the test. */
export function deadline(timeoutMs = 30_000, signal?: AbortSignal): Deadline {
  const made = Deadline.start("push", signal === undefined ? { timeoutMs } : { timeoutMs, signal });
  onTestFinished(() => made.dispose());
  return made;
}

/** The entries of a record that was published. */
export function header(published: Published | undefined): Fields {
  if (published === undefined) throw new Error("nothing was published");
  return decodeMessage(published.bytes).fields;
}

/** Answers a record with its PubAck, that of its shard's journal unless another one is given. */
export function ack(
  wire: FakeWire,
  published: Published | undefined,
  seq: number,
  stream?: string,
): void {
  if (published === undefined) throw new Error("nothing was published");
  stream ??= `PS_j_${/log\.(\d+)/.exec(published.subject)?.[1]}`;
  wire.deliver(published.reply, new TextEncoder().encode(JSON.stringify({ stream, seq })));
}

/** Answers a record with an error of JetStream. */
export function fail(wire: FakeWire, published: Published | undefined, error: object): void {
  if (published === undefined) throw new Error("nothing was published");
  wire.deliver(published.reply, new TextEncoder().encode(JSON.stringify({ error })));
}

/** What JetStream says of a stream that is full. */
export const FULL = { code: 503, err_code: 10077, description: "maximum bytes exceeded" };

/** Tells outcomes as the owner of a shard does. */
export function answer(wire: FakeWire, outcomes: Outcome[], shard = 0, session = 5): void {
  wire.deliver(`${wire.inbox}.applied`, encodeAnswers({ shard, generation: 1, session, outcomes }));
}

/** The outcome of a record that was applied. */
export function applied(n: number): Outcome {
  return { n, seq: n, version: n };
}

/** Whether and how a promise has settled. */
export function watch(promise: Promise<unknown>): {
  state: string;
  error: PserverError | undefined;
} {
  const seen: { state: string; error: PserverError | undefined } = {
    state: "pending",
    error: undefined,
  };
  promise.then(
    () => {
      seen.state = "done";
    },
    (error: PserverError) => {
      seen.state = "failed";
      seen.error = error;
    },
  );
  return seen;
}

/** Lets what can run run. */
export async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}
