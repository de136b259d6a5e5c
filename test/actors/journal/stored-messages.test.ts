import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { ClosedConnectionError } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
} from "../../../src/actors/journal/manifest.ts";
import {
  ensureSnapshotStream,
  readSnapshotState,
  SnapshotStore,
} from "../../../src/actors/journal/snapshot-store.ts";
import { encodeMessage, packValue, readCrc } from "../../../src/protocol/index.ts";
import type { StreamPublisher } from "../../../src/transport/jetstream.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";

// Proves what is asked of the broker to store, read and remove messages of snapshots: time limits, the errors of
// refusals, buffers of their own, the settings of the stream; and what is read of manifests and states, whole or
// damaged. The broker is a table of answers.

const MANIFEST: Manifest = {
  ...{ term: 2, host: "h", owner: "o", generation: 3, created: "now", fallbacks: [] },
  ...{ seq: 7, recordCrc: 5, checksum: NO_RECORDS, state: [{ seq: 4, crc: 9 }], pieces: [1, 2] },
};
const PIECE = encodeMessage({ slot: 1 }, Uint8Array.of(1, 2, 3));

function refusal(code: number, err_code: number): JetStreamApiError {
  return new JetStreamApiError({ code, err_code, description: "it said so" });
}

function storeOn(parts: { publisher?: object; client?: object; manager?: object }): SnapshotStore {
  return new SnapshotStore({
    manager: parts.manager as JetStreamManager,
    client: parts.client as JetStreamClient,
    publisher: parts.publisher as StreamPublisher,
    subjects: SUBJECTS,
    shard: SHARD,
  });
}

describe("storing", () => {
  test("a message and a manifest each have ten seconds", async () => {
    const limits: unknown[] = [];
    const store = storeOn({
      publisher: {
        publish: (_subject: string, _bytes: Uint8Array, timeoutMs: number) => {
          limits.push(timeoutMs);
          return Promise.resolve(1);
        },
      },
      client: {
        publish: (_subject: string, _bytes: Uint8Array, { timeout }: { timeout?: number }) => {
          limits.push(timeout);
          return Promise.resolve({ seq: 2 });
        },
      },
    });
    await store.publish("s", PIECE);
    await store.commit(MANIFEST, 0);
    expect(limits).toEqual([10_000, 10_000]);
  });

  test.each([
    [503, 10077, "JOURNAL_FAULT"],
    [400, 10002, "JOURNAL_FULL"],
  ])(
    "a message that is refused with %i %i can be stored later: %s",
    async (status, error, code) => {
      const publish = (): Promise<number> => Promise.reject(refusal(status, error));
      const stored = storeOn({ publisher: { publish } }).publish("s", PIECE);
      await expect(stored).rejects.toMatchObject({ code, details: { shard: SHARD } });
    },
  );
});

test("messages are removed without being overwritten, which would take the broker long", async () => {
  const removed: unknown[] = [];
  const streams = {
    deleteMessage: (...asked: unknown[]) => {
      removed.push(asked);
      return Promise.resolve(true);
    },
  };
  await storeOn({ manager: { streams } }).remove([4]);
  expect(removed).toEqual([[SUBJECTS.snapshotStream(), 4, false]]);
});

describe("reading a piece", () => {
  const ref = { seq: 4, crc: readCrc(PIECE) };

  test("gives a buffer of its own: the connection's is used again", async () => {
    const data = Uint8Array.from(PIECE);
    const direct = { getMessage: () => Promise.resolve({ seq: 4, data }) };
    const read = await storeOn({ manager: { direct } }).read(ref);
    data.fill(0);
    expect(read).toEqual(PIECE);
  });

  test("on a closed connection is CLOSED, and asks nobody else", async () => {
    const direct = { getMessage: () => Promise.reject(new ClosedConnectionError()) };
    const streams = {
      getMessage: () => Promise.resolve({ seq: 4, data: PIECE, time: new Date() }),
    };
    const read = storeOn({ manager: { direct, streams } }).read(ref);
    await expect(read).rejects.toMatchObject({ code: "CLOSED" });
  });
});

test("manifests are listed with the times at which they were stored, and undefined for what cannot be read", async () => {
  const stored = [
    { seq: 3, data: encodeManifest(MANIFEST), time: new Date(1_000) },
    { seq: 8, data: new Uint8Array(9), time: new Date(2_500) },
  ];
  const streams = {
    getMessage: (_stream: string, { seq }: { seq: number }) => {
      const found = stored.find((message) => message.seq >= seq);
      return found === undefined ? Promise.reject(refusal(404, 10037)) : Promise.resolve(found);
    },
  };
  expect(await storeOn({ manager: { streams } }).manifestEntries()).toEqual([
    { seq: 3, timeMs: 1_000, manifest: MANIFEST },
    { seq: 8, timeMs: 2_500, manifest: undefined },
  ]);
});

test("a manifest names the abandoned journal that is kept, or none", () => {
  for (const manifest of [MANIFEST, { ...MANIFEST, past: 2 }]) {
    expect(decodeManifest(encodeManifest(manifest))).toEqual(manifest);
  }
});

describe("the state of a snapshot", () => {
  /** A store whose messages have these bytes. */
  const storeOf = (parts: Uint8Array[]) => ({
    read: ({ seq }: { seq: number }) => Promise.resolve(encodeMessage({}, parts[seq])),
  });
  const manifest = { ...MANIFEST, state: [0, 1].map((seq) => ({ seq, crc: 0 })) };
  const bytes = packValue({ fold: "f", pieces: [] });

  test("is that of its parts in the order of the manifest", async () => {
    const store = storeOf([bytes.subarray(0, 5), bytes.subarray(5)]);
    expect(await readSnapshotState(store, manifest)).toEqual({ fold: "f", pieces: [] });
  });

  test("that cannot be read though its parts can is damage", async () => {
    const store = storeOf([bytes.subarray(5), bytes.subarray(0, 5)]);
    await expect(readSnapshotState(store, manifest)).rejects.toMatchObject({
      code: "SNAPSHOT_DAMAGED",
    });
  });
});

describe("the snapshot stream", () => {
  function brokerWith(...names: string[]) {
    const added: unknown[] = [];
    const streams = {
      info: (name: string) =>
        names.includes(name) ? Promise.resolve({}) : Promise.reject(refusal(404, 10059)),
      add: (config: unknown) => {
        added.push(config);
        return Promise.resolve();
      },
    };
    return { added, manager: { streams } as unknown as JetStreamManager };
  }

  test("of a job holds the snapshots of all shards on file, refuses what is too much, and can be read directly", async () => {
    const { added, manager } = brokerWith();
    await ensureSnapshotStream(manager, SUBJECTS, {
      replicas: 3,
      bytesMax: 4,
      metadata: { a: "b" },
    });
    expect(added).toEqual([
      {
        metadata: { a: "b" },
        name: SUBJECTS.snapshotStream(),
        subjects: [SUBJECTS.allSnapshots()],
        storage: "file",
        retention: "limits",
        discard: "new",
        max_bytes: 4,
        allow_direct: true,
        num_replicas: 3,
      },
    ]);
  });

  test("that exists is not made again: a broker short of storage would refuse that", async () => {
    const { added, manager } = brokerWith(SUBJECTS.snapshotStream());
    await ensureSnapshotStream(manager, SUBJECTS, { replicas: 3, bytesMax: 4, metadata: {} });
    expect(added).toEqual([]);
  });
});
