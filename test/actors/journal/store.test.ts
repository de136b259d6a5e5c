import {
  type Consumer,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/transport-node";
import { beforeEach, describe, expect, test } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import type { Manifest } from "../../../src/actors/journal/manifest.ts";
import { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { encodeMessage, readCrc } from "../../../src/protocol/index.ts";
import type { StreamPublisher } from "../../../src/transport/jetstream.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";

// Proves what a store makes of the broker's answers: a commit whose answer was lost counts, one of
// another owner deposes; a message that is gone or changed is damage; the listing leaves no consumer.
// The broker is a table of messages with the answers that nats-server gives.

const MANIFEST = SUBJECTS.manifest(SHARD);

function apiError(err_code: number): JetStreamApiError {
  return new JetStreamApiError({ code: 400, err_code, description: `error ${err_code}` });
}

function manifest(owner: string, seq = 1): Manifest {
  const header = { term: 2, host: "h", owner, generation: 1, created: "now", fallbacks: [] };
  return { ...header, seq, recordCrc: 7, checksum: NO_RECORDS, state: [], pieces: [] };
}

/** A snapshot stream. */
class Stream {
  readonly messages: Map<number, { readonly subject: string; readonly data: Uint8Array }> =
    new Map();
  /** Consumers that exist. */
  readonly consumers: Set<string> = new Set();
  /** What becomes of the next publishes: an error instead of it, or after it. */
  readonly failures: { readonly error: Error; readonly isStored: boolean }[] = [];
  readonly expected: (number | undefined)[] = [];
  /** Sequences that direct get does not have, or only damaged. */
  readonly direct: Map<number, Uint8Array | null> = new Map();
  /** What the brokers of a cluster hold in place of a message that is read by itself; none without a cluster. */
  readonly copies: (readonly [broker: string, data: Uint8Array])[] = [];
  fetchFails = false;
  #seq = 0;

  put(subject: string, data: Uint8Array): number {
    this.#seq += 1;
    this.messages.set(this.#seq, { subject, data });
    return this.#seq;
  }

  #last(subject: string): number {
    const found = [...this.messages].filter(([, message]) => message.subject === subject);
    return found.at(-1)?.[0] ?? 0;
  }

  #get(query: { seq?: number; next_by_subj?: string; last_by_subj?: string }): number {
    const { seq = 0, next_by_subj: next, last_by_subj: last } = query;
    if (last !== undefined) return this.#last(last);
    if (next === undefined) return seq;
    const found = [...this.messages].find(([at, { subject }]) => at >= seq && subject === next);
    return found?.[0] ?? 0;
  }

  readonly manager: JetStreamManager = {
    streams: {
      getMessage: (_stream: string, query: Parameters<Stream["get"]>[0]) => this.get(query),
      deleteMessage: (_stream: string, seq: number) => {
        if (seq === 666) return Promise.reject(apiError(10054));
        if (!this.messages.delete(seq))
          return Promise.reject(apiError([10043, 10057, 10037][seq % 3] ?? 0));
        return Promise.resolve(true);
      },
    },
    direct: {
      getMessage: (_stream: string, { seq }: { seq: number }) => {
        const data = this.direct.has(seq) ? this.direct.get(seq) : this.messages.get(seq)?.data;
        return Promise.resolve(data ? { seq, data } : null);
      },
    },
    consumers: {
      add: (_stream: string, config: { name: string; filter_subject?: string }) => {
        this.consumers.add(config.name);
        if (config.filter_subject === undefined) return Promise.resolve(this.#placed(config));
        const prefix = config.filter_subject.slice(0, -1);
        const all = [...this.messages].filter(([, { subject }]) => subject.startsWith(prefix));
        const delivered = { stream_seq: 0 };
        return Promise.resolve({
          name: config.name,
          num_pending: all.length,
          delivered,
          all,
          config,
        });
      },
      delete: (_stream: string, name: string) => Promise.resolve(this.consumers.delete(name)),
    },
    jetstream: () => ({
      consumers: {
        getConsumerFromInfo: ({ data, seq }: { data: Uint8Array; seq: number }) => ({
          next: () => Promise.resolve({ seq, data, subject: "s" }),
        }),
      },
    }),
  } as unknown as JetStreamManager;

  /** A consumer on the next broker of {@link copies}, and then on the last one. */
  #placed({ name, opt_start_seq: seq }: { name: string; opt_start_seq?: number }): object {
    const copy = this.copies.length > 1 ? this.copies.shift() : this.copies[0];
    if (copy === undefined) return { name };
    const [leader, data] = copy;
    return { name, cluster: { leader }, data, seq };
  }

  readonly client: JetStreamClient = {
    publish: (
      subject: string,
      data: Uint8Array,
      { expect: { lastSubjectSequence } }: { expect: { lastSubjectSequence: number } },
    ) => {
      this.expected.push(lastSubjectSequence);
      const failure = this.failures.shift();
      if (failure?.isStored === false) return Promise.reject(failure.error);
      if (lastSubjectSequence !== this.#last(subject)) return Promise.reject(apiError(10071));
      const seq = this.put(subject, data);
      return failure === undefined ? Promise.resolve({ seq }) : Promise.reject(failure.error);
    },
    consumers: {
      getConsumerFromInfo: ({ all, config }: { all: [number, unknown][]; config: object }) => {
        expect(config).toMatchObject({ headers_only: true, ack_policy: "none" });
        let delivered = 0;
        const fetch = ({ max_messages }: { max_messages: number }): Promise<unknown> => {
          if (this.fetchFails) return Promise.reject(new TimeoutError());
          const batch = all.splice(0, Math.min(max_messages, 2));
          return Promise.resolve(
            (async function* () {
              for (const [i, [seq]] of batch.entries()) {
                const pending = all.length + batch.length - 1 - i;
                delivered += 1;
                const info = { pending, streamSequence: seq, deliverySequence: delivered };
                yield { seq, info };
              }
            })(),
          );
        };
        return { fetch } as unknown as Consumer;
      },
    },
  } as unknown as JetStreamClient;

  get(query: { seq?: number; next_by_subj?: string; last_by_subj?: string }): Promise<unknown> {
    const seq = this.#get(query);
    const found = this.messages.get(seq);
    if (found === undefined) return Promise.reject(apiError(10037));
    return Promise.resolve({ seq, time: new Date(seq), ...found });
  }
}

let stream: Stream;
let store: SnapshotStore;

beforeEach(() => {
  stream = new Stream();
  store = new SnapshotStore({
    manager: stream.manager,
    client: stream.client,
    publisher: {
      publish: (subject: string, bytes: Uint8Array) => Promise.resolve(stream.put(subject, bytes)),
    } as unknown as StreamPublisher,
    subjects: SUBJECTS,
    shard: SHARD,
  });
});

const TIMED_OUT = new TimeoutError();

describe("a commit", () => {
  test("names the manifest that it follows, and gives its own sequence", async () => {
    expect(await store.commit(manifest("a"), 0)).toBe(1);
    expect(await store.commit(manifest("a", 2), 1)).toBe(2);
    expect(stream.expected).toEqual([0, 1]);
    expect((await store.lastManifest())?.manifest).toEqual(manifest("a", 2));
  });

  test("whose answer was lost counts", async () => {
    stream.failures.push({ error: TIMED_OUT, isStored: true });
    expect(await store.commit(manifest("a"), 0)).toBe(1);
    expect(stream.messages.size).toBe(1);
  });

  test("that was not stored is an error, and stays one though an older one is there", async () => {
    await store.commit(manifest("a"), 0);
    stream.failures.push({ error: TIMED_OUT, isStored: false });
    await expect(store.commit(manifest("a", 2), 1)).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(stream.messages.size).toBe(1);
  });

  test("follows an earlier one of the same owner whose answer was lost", async () => {
    await store.commit(manifest("a"), 0);
    await store.commit(manifest("a", 2), 1);
    expect(await store.commit(manifest("a", 3), 1)).toBe(3);
    expect(stream.expected).toEqual([0, 1, 1, 2]);
  });

  test("after that of another owner is refused: NOT_OWNER", async () => {
    await store.commit(manifest("a"), 0);
    await store.commit({ ...manifest("b"), term: 3, host: "other" }, 1);
    await expect(store.commit(manifest("a", 3), 1)).rejects.toMatchObject({
      code: "NOT_OWNER",
      details: { shard: SHARD, expected: 2, received: 3 },
    });
    expect(stream.messages.size).toBe(2);
  });

  test("is refused where the manifest that it follows is gone", async () => {
    await store.commit(manifest("a"), 0);
    await expect(store.commit(manifest("a", 2), 9)).rejects.toMatchObject({ code: "NOT_OWNER" });
    stream.messages.clear();
    await expect(store.commit(manifest("a", 2), 9)).rejects.toMatchObject({ code: "NOT_OWNER" });
  });
});

describe("manifests", () => {
  test("are listed oldest first, and the last is the newest", async () => {
    expect(await store.manifests()).toEqual([]);
    expect(await store.lastManifest()).toBeUndefined();
    for (const [i, seq] of [5, 6, 7].entries()) {
      stream.put(SUBJECTS.snapshotState(SHARD, 0), new Uint8Array(1));
      await store.commit(manifest("a", seq), 2 * i);
    }
    expect((await store.manifests()).map(({ seq, manifest }) => [seq, manifest.seq])).toEqual([
      [2, 5],
      [4, 6],
      [6, 7],
    ]);
    expect((await store.lastManifest())?.seq).toBe(6);
  });

  test("that follow each other are all there", async () => {
    for (const seq of [5, 6, 7]) await store.commit(manifest("a", seq), seq - 5);
    expect((await store.manifests()).map(({ manifest }) => manifest.seq)).toEqual([5, 6, 7]);
  });

  test("that cannot be read are damage", async () => {
    stream.put(MANIFEST, new Uint8Array(9));
    await expect(store.lastManifest()).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
    await expect(store.manifests()).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });
});

describe("a piece", () => {
  const PIECE = encodeMessage({ slot: 1 }, Uint8Array.of(1, 2, 3));
  const subject = SUBJECTS.piece(SHARD, "w", 0, 1);

  test("is known by sequence and checksum", async () => {
    const ref = await store.publish(subject, PIECE);
    expect(ref).toEqual({ seq: 1, crc: readCrc(PIECE) });
    expect(await store.read(ref)).toEqual(PIECE);
  });

  test("that a replica lacks is read from the leader", async () => {
    const ref = await store.publish(subject, PIECE);
    stream.direct.set(ref.seq, null);
    expect(await store.read(ref)).toEqual(PIECE);
  });

  test("that is damaged is taken from a sound copy of another broker", async () => {
    const ref = await store.publish(subject, PIECE);
    const changed = Uint8Array.from(PIECE);
    changed[changed.length - 1] = 9;
    stream.direct.set(ref.seq, changed);
    // The second consumer is on the broker that was just asked, and is made again.
    stream.copies.push(["a", changed], ["a", changed], ["b", PIECE], ["c", changed]);
    expect(await store.read(ref)).toEqual(PIECE);
    stream.copies.splice(0, Number.POSITIVE_INFINITY, ["a", changed], ["b", changed]);
    await expect(store.read(ref)).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
    stream.copies.splice(0, Number.POSITIVE_INFINITY);
    await expect(store.read(ref)).rejects.toMatchObject({ code: "SNAPSHOT_DAMAGED" });
  });

  test("that is gone, changed, or another is damage", async () => {
    const ref = await store.publish(subject, PIECE);
    const damaged = { code: "SNAPSHOT_DAMAGED", details: { shard: SHARD, seq: ref.seq } };
    const changed = Uint8Array.from(PIECE);
    changed[changed.length - 1] = 9;
    for (const bytes of [changed, encodeMessage({ slot: 2 })]) {
      stream.direct.set(ref.seq, bytes);
      await expect(store.read(ref)).rejects.toMatchObject(damaged);
    }
    stream.direct.clear();
    stream.messages.clear();
    await expect(store.read(ref)).rejects.toMatchObject(damaged);
  });
});

describe("the messages of a shard", () => {
  beforeEach(() => {
    for (const shard of [SHARD, SHARD + 1]) {
      for (let part = 0; part < 5; part++) {
        stream.put(SUBJECTS.snapshotState(shard, part), new Uint8Array(1));
      }
    }
  });

  test("are listed without those of others, and no consumer stays", async () => {
    expect([...(await store.list()).keys()]).toEqual([1, 2, 3, 4, 5]);
    expect(stream.consumers.size).toBe(0);
  });

  test("are none where nothing is stored", async () => {
    stream.messages.clear();
    expect((await store.list()).size).toBe(0);
    expect(stream.consumers.size).toBe(0);
  });

  test("are not listed while the broker does not answer; no consumer stays either", async () => {
    stream.fetchFails = true;
    await expect(store.list()).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(stream.consumers.size).toBe(0);
  });

  test("are removed; one that is gone counts as removed, another error does not", async () => {
    await store.remove([1, 3, 30, 31, 32, 5]);
    expect([...stream.messages.keys()]).toEqual([2, 4, 6, 7, 8, 9, 10]);
    await expect(store.remove([2, 666, 4])).rejects.toMatchObject({ details: { shard: SHARD } });
    expect([...stream.messages.keys()]).toEqual([4, 6, 7, 8, 9, 10]);
  });
});
