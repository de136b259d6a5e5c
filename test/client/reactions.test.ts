// Proves that the TypeScript client does about each error in the answer to each kind of question what the
// shared vectors say, which hold the C library, too. The test plays broker and hosts on a fake
// connection, with a fake clock: the first answer is the error, later ones are as they should be.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Deadline } from "../../src/client/calls/calls.ts";
import { ClientParts } from "../../src/client/client.ts";
import {
  computeLayout,
  decodeMessage,
  draftPullReply,
  type ErrorCode,
  encodeAnswers,
  encodeError,
  encodeMessage,
  encodeStepReply,
  ensureError,
  type Fields,
  JobSubjects,
  PserverError,
  sealMessage,
} from "../../src/protocol/index.ts";
import { FakeWire } from "../support/fake-wire.ts";
import { type AskedKind, reactionCases } from "./reaction-vectors.ts";

const TIMEOUT_MS = 20_000;
const SYNC = { mode: "sync", trainers: 1, backups: 0, reduce: "mean" } as const;
const VERBS = {
  lifecycle: "begin",
  pull: "pull",
  step: "step",
  outcome: "outcome",
  record: "record",
} as const;
const LAYOUT = computeLayout({
  name: "w",
  dtype: "float32",
  shape: [2],
  shards: 1,
  maxPayloadBytes: 1 << 20,
});
const INFO = { name: "w", dtype: "float32", shape: [2], config: {}, epoch: 2, ready: true };

/** A host that refuses the first question of a verb. */
class RefusingHost extends FakeWire {
  readonly #verb: string;
  readonly #code: ErrorCode;
  readonly #synchronization: Fields;
  readonly #asked: { verb: string; atMs: number; fields: Fields }[] = [];
  #session = 40;

  constructor(kind: AskedKind, code: ErrorCode) {
    super();
    this.#verb = VERBS[kind];
    this.#code = code;
    this.#synchronization = kind === "step" ? SYNC : { mode: "async" };
  }

  asked(verb: string): { atMs: number; fields: Fields }[] {
    return this.#asked.filter((question) => question.verb === verb);
  }

  override publish(subject: string, bytes: Uint8Array, reply: string): void {
    super.publish(subject, bytes, reply);
    const { fields } = decodeMessage(bytes);
    const isRecord = subject.includes(".log.");
    const asksForLosses = Array.isArray(fields["numbers"]) && fields["numbers"].length === 0;
    const word = asksForLosses ? "fallbacks" : (subject.split(".").at(-1) ?? "");
    const verb = isRecord ? "record" : word;
    this.#asked.push({ verb, atMs: performance.now(), fields });
    if (isRecord) {
      this.#store(fields, reply);
      return;
    }
    const isRefused = verb === this.#verb && this.asked(verb).length === 1;
    this.#later(reply, isRefused ? this.#refusal() : this.#answer(verb));
  }

  #refusal(): Uint8Array {
    const isReplaced = this.#code === "JOURNAL_REPLACED";
    const details = isReplaced ? { expected: { generation: 2, seq: 0 } } : {};
    return encodeError(new PserverError(this.#code, "said by the test", details));
  }

  #answer(verb: string): Uint8Array {
    const at = { generation: 2, seq: 0 };
    const begun = { selected: true, state: "initializing", epoch: 2, by: "t" };
    switch (verb) {
      case "join":
        return this.#joined();
      case "begin":
        return encodeMessage(begun);
      case "enter":
        return encodeMessage({ revision: 1 });
      case "step":
        return encodeStepReply({ ...at, revision: 1, step: 0, waitingFor: [] });
      case "outcome":
        return this.#applied(41, 1);
      case "fallbacks":
        return encodeAnswers({ shard: 0, generation: 2, session: 41, outcomes: [] });
      case "pull": {
        const reply = { ...at, epoch: 2, dtype: "float32", version: 1 } as const;
        return sealMessage(draftPullReply(reply, 8));
      }
      default:
        return encodeMessage({
          ...{ state: "ready", epoch: 2, by: "t", shards: 1, more: false, at: [] },
          parameters: [{ ...INFO, layout: LAYOUT, firstNumber: 1 }],
        });
    }
  }

  #joined(): Uint8Array {
    this.#session += 1;
    return encodeMessage({
      ...{ session: this.#session, made: "now", shards: 1, leaseMs: 600_000, journal: "file" },
      ...{ synchronization: this.#synchronization, maxPayloadBytes: 1 << 20 },
    });
  }

  /** Stores a record. The first session's outcomes have to be asked for, but for those of clocks. */
  #store(fields: Fields, reply: string): void {
    const [session, n] = [Number(fields["session"]), Number(fields["n"])];
    this.#later(reply, new TextEncoder().encode('{"stream":"PS_j_0","seq":1}'));
    const isRefused = this.#verb === "record" && session === 41;
    if (session > 41 || fields["step"] !== undefined || isRefused) {
      const code = isRefused ? this.#code : undefined;
      this.#later(`${this.inbox}.applied`, this.#applied(session, n, code));
    }
  }

  #applied(session: number, n: number, code?: ErrorCode): Uint8Array {
    const rejection = code === undefined ? {} : { code, message: "said by the test" };
    const outcomes = [{ n, seq: 1, version: code === undefined ? 2 : 0, ...rejection }];
    return encodeAnswers({ shard: 0, generation: 1, session, outcomes });
  }

  #later(subject: string, bytes: Uint8Array): void {
    setTimeout(() => this.deliver(subject, bytes), 1);
  }
}

function ask(kind: AskedKind, parts: ClientParts, deadline: Deadline): Promise<unknown> {
  switch (kind) {
    case "lifecycle":
      return parts.lifecycle.begin(false, deadline);
    case "pull":
      return parts.puller.pull(["w"], deadline);
    case "step":
      return parts.steps.endStep(deadline);
    case "outcome":
    case "record":
      return parts.updates.pushFull("w", new Float32Array(2), { alpha: 1, beta: 1 }, deadline, {});
  }
}

/** What the client did about the first answer, by what it published, and when. */
function observed(
  host: RefusingHost,
  verb: string,
  error: PserverError | undefined,
  lost: PserverError | undefined,
  expected: ErrorCode,
): string {
  const [first, second] = host.asked(verb);
  if (lost !== undefined) return lost.code === expected && !second ? "end" : "died";
  if (host.asked("join").length > 1) return "rejoin";
  if (first === undefined || second === undefined) {
    return error?.code === expected ? "fail" : `failed as ${error?.code}`;
  }
  if (error !== undefined) return `failed later, as ${error.code}`;
  if (host.asked("status").length > 1) return "look-up";
  if (host.asked("enter").length > 1) return "enter";
  if (second.fields["generation"] === 2) return "replaced";
  const gapMs = second.atMs - first.atMs;
  if (gapMs < 30) return "again without a pause";
  return gapMs < 400 ? "again" : "later";
}

async function reaction(kind: AskedKind, code: ErrorCode): Promise<string> {
  const host = new RefusingHost(kind, code);
  let lost: PserverError | undefined;
  const deadline = Deadline.start("test", { timeoutMs: TIMEOUT_MS });
  const parts = new ClientParts({
    wire: host,
    control: host.control,
    subjects: new JobSubjects("j"),
    trainer: "t",
    fail: (error) => {
      lost ??= error;
      deadline.end(error);
    },
  });
  const asking = (async () => {
    await parts.session.join(deadline);
    await ask(kind, parts, deadline);
  })().then(
    () => undefined,
    (error: unknown) => ensureError(error),
  );
  await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 1_000);
  const error = await asking;
  parts.session.stop();
  parts.sender.close();
  deadline.dispose();
  return observed(host, VERBS[kind], error, lost, code);
}

const CASES = reactionCases()["reactions"] as {
  readonly kind: AskedKind;
  readonly code: ErrorCode;
  readonly reaction: string;
}[];

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe.each(Object.keys(VERBS) as AskedKind[])("an answer to a question: %s", (kind) => {
  test.each(CASES.filter((entry) => entry.kind === kind))("$code: $reaction", async (entry) => {
    expect(await reaction(kind, entry.code)).toBe(entry.reaction);
  });
});
