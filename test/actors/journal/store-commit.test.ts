import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { NO_RECORDS } from "../../../src/actors/fold/journal-checksum.ts";
import { encodeManifest, type Manifest } from "../../../src/actors/journal/manifest.ts";
import { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { JobSubjects, PserverError } from "../../../src/protocol/index.ts";
import type { StreamPublisher } from "../../../src/transport/jetstream.ts";

// Proves what a commit makes of a broker that refuses it: another owner's manifest deposes, its own that
// was answered to nobody counts, and a write that is merely in the way of another says nothing of
// owners. The test is the broker.

const MANIFEST: Manifest = {
  term: 2,
  host: "a",
  owner: "one",
  generation: 1,
  created: "now",
  seq: 7,
  recordCrc: 5,
  checksum: NO_RECORDS,
  state: [],
  fallbacks: [],
  pieces: [],
};

/** A store whose first writes are refused, and whose newest manifest is this one. */
function storeWith(
  refusals: { code: number; err_code: number }[],
  newest: { seq: number; manifest: Manifest },
): SnapshotStore {
  const streams = {
    getMessage: () => {
      const data = encodeManifest(newest.manifest);
      return Promise.resolve({ seq: newest.seq, data, time: new Date(0) });
    },
  };
  const publish = async (): Promise<{ seq: number }> => {
    const refusal = refusals.shift();
    if (refusal === undefined) return { seq: 99 };
    throw new JetStreamApiError({ ...refusal, description: "it said so" });
  };
  return new SnapshotStore({
    manager: { streams } as unknown as JetStreamManager,
    client: { publish } as unknown as JetStreamClient,
    publisher: {} as unknown as StreamPublisher,
    subjects: new JobSubjects("j"),
    shard: 3,
  });
}

describe.each([
  ["as a single broker says it", { code: 400, err_code: 10071 }],
  ["as a cluster says it", { code: 400, err_code: 10164 }],
])("a commit that was overtaken, %s,", (_how, refusal) => {
  test("is not repeated after an earlier one of its own once that is not wanted any more", async () => {
    const store = storeWith([refusal], { seq: 12, manifest: { ...MANIFEST, seq: 6 } });
    const ended = new PserverError("CLOSED", "a later snapshot was made");
    await expect(store.commit(MANIFEST, 11, () => ended)).rejects.toBe(ended);
  });

  test("is deposed by another owner's manifest", async () => {
    const other = { ...MANIFEST, term: 3, owner: "two", host: "b" };
    const store = storeWith([refusal], { seq: 12, manifest: other });
    await expect(store.commit(MANIFEST, 11)).rejects.toMatchObject({
      code: "NOT_OWNER",
      details: { expected: 2, received: 3 },
    });
  });

  test("follows an earlier one of its own whose answer was lost", async () => {
    const store = storeWith([refusal], { seq: 12, manifest: { ...MANIFEST, seq: 6 } });
    expect(await store.commit(MANIFEST, 11)).toBe(99);
  });

  test("is not made again if it is the newest", async () => {
    const store = storeWith([refusal], { seq: 12, manifest: MANIFEST });
    expect(await store.commit(MANIFEST, 11)).toBe(12);
  });
});

test("a commit that is in the way of a write under way can be made later", async () => {
  const store = storeWith([{ code: 400, err_code: 10164 }], {
    seq: 11,
    manifest: { ...MANIFEST, seq: 6 },
  });
  await expect(store.commit(MANIFEST, 11)).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
});

test.each([
  [503, 10008, "JETSTREAM_UNAVAILABLE"],
  [503, 10077, "JOURNAL_FAULT"],
  [400, 10002, "JOURNAL_FULL"],
])("a commit that is refused with %i %i can be made later: %s", async (status, errorCode, code) => {
  const store = storeWith([{ code: status, err_code: errorCode }], {
    seq: 11,
    manifest: { ...MANIFEST, seq: 6 },
  });
  await expect(store.commit(MANIFEST, 11)).rejects.toMatchObject({ code, details: { shard: 3 } });
});
