// Proves when a failed owner takes its shard for recovered: at another owner's manifest, once it is
// complete or stays incomplete, and at nothing else. The manifests are what the test says.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Manifest, StoredManifest } from "../../../src/actors/journal/manifest.ts";
import { RecoveryWatch } from "../../../src/actors/owner/shard-owner.ts";
import { PserverError } from "../../../src/protocol/index.ts";

let last: StoredManifest | undefined | PserverError;
let recovered: number[];
let watch: RecoveryWatch;

function manifest(owner: string, created: string, seq = 1): StoredManifest {
  return { seq, manifest: { owner, created, generation: 2 } as Manifest };
}

beforeEach(() => {
  vi.useFakeTimers();
  last = undefined;
  recovered = [];
  watch = new RecoveryWatch({
    store: {
      lastManifest: () =>
        last instanceof PserverError ? Promise.reject(last) : Promise.resolve(last),
    },
    owner: "ours",
    everyMs: 1_000,
    onRecovered: ({ generation }) => recovered.push(generation),
  });
});

afterEach(() => {
  watch.stop();
  vi.useRealTimers();
});

test("another owner's manifest is the end of the failure, and is reported once", async () => {
  last = manifest("ours", "now");
  await vi.advanceTimersByTimeAsync(3_000);
  expect(recovered).toEqual([]);
  last = manifest("theirs", "now");
  await vi.advanceTimersByTimeAsync(3_000);
  expect(recovered).toEqual([2]);
});

test("a manifest whose journal is still to be made is looked at once more", async () => {
  last = manifest("theirs", "");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(recovered).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(recovered).toEqual([2]);
});

test("a broker that does not answer, or a damaged manifest, ends nothing", async () => {
  last = new PserverError("SNAPSHOT_DAMAGED", "a manifest cannot be read");
  await vi.advanceTimersByTimeAsync(3_000);
  last = undefined;
  await vi.advanceTimersByTimeAsync(3_000);
  expect(recovered).toEqual([]);
  last = manifest("theirs", "now");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(recovered).toEqual([2]);
});

test("a watch that was stopped reports nothing", async () => {
  last = manifest("theirs", "now");
  watch.stop();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(recovered).toEqual([]);
});

test.each([
  ["whose journal is still to be made", ""],
  ["that is complete", "now"],
])(
  "a watch that is stopped before it is told of a manifest %s reports nothing, and looks no more",
  async (_which, created) => {
    let looks = 0;
    let tell: () => void = () => undefined;
    watch.stop();
    watch = new RecoveryWatch({
      store: {
        lastManifest: () => {
          looks += 1;
          return new Promise((resolve) => {
            tell = () => resolve(manifest("theirs", created));
          });
        },
      },
      owner: "ours",
      everyMs: 1_000,
      onRecovered: ({ generation }) => recovered.push(generation),
    });
    await vi.advanceTimersByTimeAsync(1_000);
    watch.stop();
    tell();
    await vi.advanceTimersByTimeAsync(3_000);
    expect([looks, recovered]).toEqual([1, []]);
  },
);
