// Proves that a trainer which is selected to create a parameter and fails gives that up, so that another one is selected
// although this one lives on, and that its call still fails with what it has failed with. The test plays broker and hosts
// on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { ClientParts } from "../../../src/client/client.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  JobSubjects,
  type PserverError,
} from "../../../src/protocol/index.ts";
import { FakeWire } from "../../support/fake-wire.ts";
import { parameter } from "../joined-client.ts";

const EPOCH = 3;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** A connection to hosts that select this trainer, and to a broker that answers no record. */
class SelectingWire extends FakeWire {
  readonly asked: { readonly verb: string; readonly fields: Fields }[] = [];
  answersAbort = true;

  override publish(subject: string, bytes: Uint8Array, reply: string): void {
    super.publish(subject, bytes, reply);
    if (!subject.startsWith("ps.j.lifecycle.")) return;
    const verb = subject.split(".").at(-1) ?? "";
    const { fields } = decodeMessage(bytes);
    this.asked.push({ verb, fields });
    const answer = this.#answer(verb);
    if (answer !== undefined) queueMicrotask(() => this.deliver(reply, answer));
  }

  /** What the trainer has given up. */
  get aborts(): Fields[] {
    return this.asked.filter(({ verb }) => verb === "abort").map(({ fields }) => fields);
  }

  #answer(verb: string): Uint8Array | undefined {
    const selection = { selected: true, state: "initializing", epoch: EPOCH, by: "t" };
    if (verb === "create") {
      const parameters = [{ ...parameter("w"), epoch: EPOCH, ready: false }];
      return encodeMessage({ ...selection, parameters, at: [] });
    }
    if (verb === "abort") {
      const aborted = { ...selection, selected: false, state: "uninitialized" };
      return this.answersAbort ? encodeMessage(aborted) : undefined;
    }
    if (verb !== "join") return undefined;
    const settings = { made: "now", shards: 1, leaseMs: 600_000, journal: "file" };
    const terms = { synchronization: { mode: "async" }, maxPayloadBytes: 8_000_000 };
    return encodeMessage({ session: 5, ...settings, ...terms });
  }
}

/** Begins to create the parameter "w" with a timeout of a second; returns how that ends. */
async function create(
  wire: SelectingWire,
  signal?: AbortSignal,
): Promise<{ readonly error: () => PserverError | undefined }> {
  const parts = new ClientParts({
    ...{ wire, control: wire.control, subjects: new JobSubjects("j"), trainer: "t" },
    fail: (error) => {
      throw error;
    },
  });
  onTestFinished(() => parts.stop());
  const joining = Deadline.start("join", { timeoutMs: 30_000 });
  await parts.session.join(joining);
  joining.dispose();
  const deadline = Deadline.start("create", {
    timeoutMs: 1_000,
    ...(signal === undefined ? {} : { signal }),
  });
  let error: PserverError | undefined;
  parts.lifecycle.create("w", new Float32Array(4), undefined, deadline).catch((thrown) => {
    error = thrown;
  });
  await vi.advanceTimersByTimeAsync(0);
  return { error: () => error };
}

describe("a selected trainer gives up", () => {
  const GIVEN_UP = [{ session: 5, made: "now", epoch: EPOCH, parameter: "w" }];

  test("when its values are not stored in time", async () => {
    const wire = new SelectingWire();
    const { error } = await create(wire);
    expect(wire.published.at(-1)?.subject).toContain(".log.");
    expect(wire.aborts).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(wire.aborts).toEqual(GIVEN_UP);
    expect(error()?.code).toBe("OUTCOME_UNKNOWN");
  });

  test("when its caller aborts the call", async () => {
    const wire = new SelectingWire();
    const controller = new AbortController();
    const { error } = await create(wire, controller.signal);
    controller.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect(wire.aborts).toEqual(GIVEN_UP);
    expect(error()?.code).toBe("ABORTED");
  });

  test("and fails with its own error 2 s later at most if no host answers", async () => {
    const wire = new SelectingWire();
    wire.answersAbort = false;
    const { error } = await create(wire);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([wire.aborts, error()]).toEqual([GIVEN_UP, undefined]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(error()?.code).toBe("OUTCOME_UNKNOWN");
  });
});
