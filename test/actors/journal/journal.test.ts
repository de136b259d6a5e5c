// Proves what is asked of the broker about a journal: purging below the first record asks for nothing,
// for "below 0" is all; the state names the sequences without a record; a journal is opened in an order
// that lets no trainer write before its rules; and in a cluster it is taken to be gone only if it is not on
// the list of streams either. The broker is a table of streams.
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { Journal } from "../../../src/actors/journal/journal.ts";
import { decodeMessage, JobSubjects } from "../../../src/protocol/index.ts";

const NOT_FOUND = { code: 404, err_code: 10059, description: "stream not found" };

function journalOn(streams: object, replicas = 1): Journal {
  return new Journal({
    manager: { streams } as unknown as JetStreamManager,
    client: {} as unknown as JetStreamClient,
    subjects: new JobSubjects("j"),
    settings: {
      storage: "file",
      bytesMax: 1,
      replicas,
      rules: 1,
      synchronization: { mode: "async" },
    },
    shard: 3,
  });
}

test("a purge below record 0 or 1 does nothing", async () => {
  const purged: unknown[] = [];
  const streams = {
    purge: (stream: string, options: unknown) => {
      purged.push([stream, options]);
      return Promise.resolve();
    },
  };
  const journal = journalOn(streams);
  await journal.purgeBelow(1, 0);
  await journal.purgeBelow(1, 1);
  await journal.purgeBelow(2, 7);
  expect(purged).toEqual([["PS_j_3_2", { seq: 7 }]]);
});

test("the state of a journal names the sequences that hold no record, and what the broker has lost", async () => {
  const asked: unknown[] = [];
  const state = { first_seq: 2, last_seq: 9, bytes: 70 };
  const deleted = { num_deleted: 2, deleted: [4, 5] };
  const states = [
    { ...state, ...deleted, lost: { msgs: [4] } },
    { ...state, lost: { msgs: null } },
    state,
  ];
  const journal = journalOn({
    info: (stream: string, options: unknown) => {
      asked.push([stream, options]);
      return Promise.resolve({ created: "now", config: { max_bytes: 99 }, state: states.shift() });
    },
  });
  const expected = { created: "now", firstSeq: 2, lastSeq: 9, bytes: 70, bytesMax: 99 };
  expect(await journal.info(1)).toEqual({ ...expected, missing: [4, 5], lost: [4] });
  expect(await journal.info(1)).toEqual({ ...expected, missing: [], lost: [] });
  expect(await journal.info(1)).toEqual({ ...expected, missing: [], lost: undefined });
  // Without the option the broker only counts them.
  expect(asked).toEqual(Array(3).fill(["PS_j_3", { deleted_details: true }]));
});

test("of abandoned journals the newest is kept, under another subject and as large as it is; older ones are removed", async () => {
  const calls: unknown[] = [];
  const there = new Map([
    ["PS_j_3", 10],
    ["PS_j_3_2", 70],
  ]);
  const lastSeqs = new Map<string, number>();
  const journal = journalOn({
    info: (stream: string) => {
      const bytes = there.get(stream);
      if (bytes === undefined) {
        return Promise.reject(
          new JetStreamApiError({ code: 404, err_code: 10059, description: "" }),
        );
      }
      const state = { first_seq: 2, last_seq: lastSeqs.get(stream) ?? 9, bytes };
      return Promise.resolve({ created: "now", config: { max_bytes: 99 }, state });
    },
    update: (stream: string, config: unknown) => {
      calls.push([stream, config]);
      // A record that was stored after the first look at the stream.
      lastSeqs.set(stream, 10);
      return Promise.resolve();
    },
    delete: (stream: string) => {
      calls.push(stream);
      return Promise.resolve(true);
    },
  });
  const left = await journal.setAside([1, 2, 3]);
  expect([...left]).toMatchObject([
    [2, { lastSeq: 10 }],
    [1, { lastSeq: 9 }],
  ]);
  expect(calls).toEqual([["PS_j_3_2", { subjects: ["ps.j.left.3.2"], max_bytes: 70 }], "PS_j_3"]);
});

test("the last sequence is asked for without the sequences that hold no record", async () => {
  const asked: unknown[][] = [];
  const journal = journalOn({
    info: (...question: unknown[]) => {
      asked.push(question);
      if (question[0] === "PS_j_3") return Promise.resolve({ state: { last_seq: 9 } });
      return Promise.reject(new JetStreamApiError(NOT_FOUND));
    },
  });
  expect(await journal.lastSeq(1)).toBe(9);
  expect(await journal.lastSeq(2)).toBeUndefined();
  expect(await journal.info(2)).toBeUndefined();
  expect(asked.slice(0, 2)).toEqual([["PS_j_3"], ["PS_j_3_2"]]);
});

describe("opening a journal", () => {
  /** The streams of a broker; `calls` says what was done to them, in order. */
  class Streams {
    readonly calls: unknown[][] = [];
    readonly #names: Set<string>;

    constructor(...names: string[]) {
      this.#names = new Set(names);
    }

    info(name: string): Promise<unknown> {
      if (!this.#names.has(name)) return Promise.reject(new JetStreamApiError(NOT_FOUND));
      const state = { first_seq: 1, last_seq: 1, bytes: 5 };
      return Promise.resolve({ created: name, config: { max_bytes: 1 }, state });
    }

    add(config: { name: string; subjects: string[] }): Promise<void> {
      this.calls.push(["add", config]);
      this.#names.add(config.name);
      return Promise.resolve();
    }

    update(name: string, { subjects }: { subjects: string[] }): Promise<void> {
      this.calls.push(["update", name, subjects]);
      return Promise.resolve();
    }

    delete(name: string): Promise<void> {
      this.calls.push(["delete", name]);
      return Promise.resolve();
    }

    names(): string[] {
      return [...this.#names];
    }
  }

  function journal(streams: Streams, storage: "file" | "memory"): Journal {
    return new Journal({
      manager: { streams } as unknown as JetStreamManager,
      client: {
        publish: async (subject: string, bytes: Uint8Array) => {
          const { fields } = decodeMessage(bytes);
          // Only what was answered is stored.
          await new Promise((resolve) => setImmediate(resolve));
          streams.calls.push(["publish", subject, fields["rules"]]);
          return { stream: "PS_j_3_2", seq: 1 };
        },
      } as unknown as JetStreamClient,
      subjects: new JobSubjects("j"),
      settings: {
        storage,
        bytesMax: 77,
        replicas: 3,
        rules: 1,
        synchronization: { mode: "async" },
      },
      shard: 3,
    });
  }

  const SUBJECTS_TAKEN = ["update", "PS_j_3_2", ["ps.j.log.3.>"]];

  test("writes its rules before any trainer can write, and says what was made", async () => {
    const streams = new Streams("PS_j_3");
    expect((await journal(streams, "file").open(2, 1)).created).toBe("PS_j_3_2");
    expect(streams.calls).toEqual([
      [
        "add",
        {
          name: "PS_j_3_2",
          subjects: ["ps.j.log.3.host.rules"],
          storage: "file",
          retention: "limits",
          discard: "new",
          max_bytes: 77,
          num_replicas: 3,
          allow_direct: false,
        },
      ],
      ["publish", "ps.j.log.3.host.rules", 1],
      SUBJECTS_TAKEN,
    ]);
  });

  test("that was begun is completed, without writing rules that it has already", async () => {
    const streams = new Streams("PS_j_3_2");
    await journal(streams, "file").open(2, 1);
    await journal(streams, "file").open(2);
    expect(streams.calls).toEqual([
      ["publish", "ps.j.log.3.host.rules", 1],
      SUBJECTS_TAKEN,
      SUBJECTS_TAKEN,
    ]);
  });

  test("in memory first removes those of older generations, which keep its subjects, and no later one", async () => {
    const streams = new Streams("PS_j_3_3", "PS_j_3");
    await journal(streams, "memory").open(2);
    expect(streams.calls.map(([what, name]) => [what, name])).toEqual([
      ["delete", "PS_j_3"],
      ["add", expect.objectContaining({ name: "PS_j_3_2", storage: "memory" })],
      ["update", "PS_j_3_2"],
    ]);
  });

  test("in memory takes an older one that somebody else has removed meanwhile for removed", async () => {
    const streams = new Streams("PS_j_3");
    streams.delete = () => Promise.reject(new JetStreamApiError(NOT_FOUND));
    expect((await journal(streams, "memory").open(2)).created).toBe("PS_j_3_2");
  });

  test("that the broker has no storage for is NO_SPACE", async () => {
    const streams = new Streams();
    streams.add = () =>
      Promise.reject(
        new JetStreamApiError({ code: 500, err_code: 10047, description: "insufficient storage" }),
      );
    await expect(journal(streams, "file").open(1)).rejects.toMatchObject({ code: "NO_SPACE" });
  });
});

describe("one record", () => {
  test("is what the stream holds, or undefined", async () => {
    const missing = { code: 404, err_code: 10037, description: "no message found" };
    const journal = journalOn({
      getMessage: (stream: string, { seq }: { seq: number }) => {
        if (seq === 8) return Promise.reject(new JetStreamApiError(missing));
        if (seq === 9) return Promise.reject(new JetStreamApiError(NOT_FOUND));
        return Promise.resolve({ seq, subject: stream, data: Uint8Array.of(seq) });
      },
    });
    expect(await journal.record(2, 7)).toEqual({
      seq: 7,
      subject: "PS_j_3_2",
      payload: Uint8Array.of(7),
    });
    expect(await journal.record(2, 8)).toBeUndefined();
    await expect(journal.record(2, 9)).rejects.toBeDefined();
  });
});

describe("a journal that a broker of a cluster does not find", () => {
  function journalListedAs(names: () => AsyncGenerator<string>, replicas = 3): Journal {
    const info = (): Promise<never> => Promise.reject(new JetStreamApiError(NOT_FOUND));
    return journalOn({ info, names }, replicas);
  }

  test("is gone if it is not on the list of streams", async () => {
    const journal = journalListedAs(async function* () {
      yield "PS_j_33";
    });
    expect(await journal.info(1)).toBeUndefined();
  });

  test("is unavailable for now if it is: a server may not have read it from its disk yet", async () => {
    const journal = journalListedAs(async function* () {
      yield "PS_j_2";
      yield "PS_j_3";
    });
    await expect(journal.info(1)).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
  });

  test("is gone if the job is kept on one broker, which need not be asked for the list", async () => {
    const journal = journalListedAs(() => {
      throw new Error("asked");
    }, 1);
    expect(await journal.info(1)).toBeUndefined();
  });

  test("is unavailable for now if the list cannot be read", async () => {
    const journal = journalListedAs(async function* () {
      yield await Promise.reject(
        new JetStreamApiError({ code: 503, err_code: 10008, description: "no leader" }),
      );
    });
    await expect(journal.info(1)).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
  });
});
