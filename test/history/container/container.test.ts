// Proves that the files of archives hold what was written, and that nothing can be changed in them unseen:
// random frames come back the same; every flipped byte and every cut of a file is BAD_ARCHIVE with file
// and offset, and so are frames that were left out, added, or put elsewhere; a newer version is told as such.
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ContainerReader,
  HEADER_BYTES,
  makeHeader,
  type PlacedFrame,
  PREAMBLE_BYTES,
} from "../../../src/history/archive/container.ts";

import { encodeFrame, type Frame } from "../../../src/history/archive/frames.ts";
import { checksum, ensureError, type PserverError } from "../../../src/protocol/index.ts";
import { anyFrame } from "./arbitrary-frames.ts";
import { readContainer, temporaryDirectory, writeContainer } from "./container-files.ts";

const FRAMES: readonly Frame[] = [
  { kind: "job", job: "j", shards: 2, synchronization: { mode: "async" }, archive: "a" },
  { kind: "manifest", shard: 0, seq: 9, timeMs: 1.5, pieces: [7, 8], data: Uint8Array.of(1, 2) },
  { kind: "piece", shard: 0, seq: 7, data: Uint8Array.of(3) },
  { kind: "piece", shard: 0, seq: 8, data: new Uint8Array(0) },
  ...[5, 6].map((seq) => ({
    kind: "record" as const,
    ...{ shard: 0, generation: 1, seq, timeMs: seq / 3, subject: "ps.j.log.0.host.floor" },
    data: Uint8Array.of(seq, 0, 255),
  })),
];

async function failure(path: string): Promise<PserverError> {
  return ensureError(
    await readContainer(path).then(
      () => new Error("read"),
      (error) => error,
    ),
  );
}

async function wholeFrames(path: string): Promise<PlacedFrame[]> {
  await using reader = await ContainerReader.open(path);
  const frames: PlacedFrame[] = [];
  for await (const batch of reader.wholeFrames()) frames.push(...batch);
  return frames;
}

test("random frames come back as they were", async () => {
  const path = join(temporaryDirectory(), "file");
  const property = fc.asyncProperty(fc.array(anyFrame, { maxLength: 30 }), async (frames) => {
    await writeContainer(path, frames);
    expect(await readContainer(path)).toEqual(frames);
  });
  await fc.assert(property, { numRuns: 60 });
});

test("frames longer than what is read at one time come back, between short ones", async () => {
  const path = join(temporaryDirectory(), "file");
  const long = (bytes: number, seq: number): Frame => {
    const data = Uint8Array.from({ length: bytes }, (_, i) => i * seq);
    return { kind: "piece", shard: 1, seq, data };
  };
  const frames = [long(3_000_000, 3), long(10, 5), long(1_048_576, 7), long(1, 9)];
  await writeContainer(path, frames);
  const read = await readContainer(path);
  expect(read.map(({ kind }) => kind)).toEqual(frames.map(({ kind }) => kind));
  for (const [i, frame] of read.entries()) {
    const { data } = frames[i] as Extract<Frame, { kind: "piece" }>;
    expect(frame.kind === "piece" && Buffer.compare(frame.data, data)).toBe(0);
  }
});

describe("damage", () => {
  test("of any byte is found, and its place named", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    const sound = readFileSync(path);
    for (let at = 0; at < sound.length; at++) {
      const changed = Buffer.from(sound);
      changed[at] = (changed[at] as number) ^ (1 << (at % 8));
      writeFileSync(path, changed);
      const { code, details, message } = await failure(path);
      expect(code, `byte ${at}`).toBe("BAD_ARCHIVE");
      expect(details["path"]).toBe(path);
      // The frame that it is in, or for the length of one the frame itself.
      expect(details["offset"], `byte ${at}`).toBeLessThanOrEqual(at);
      expect(message).toContain(`${path}, byte ${details["offset"]}: `);
    }
  });

  test("by a cut anywhere is found", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    const { length } = readFileSync(path);
    for (let left = length - 1; left >= 0; left--) {
      truncateSync(path, left);
      const { code, details } = await failure(path);
      expect(code, `cut at ${left}`).toBe("BAD_ARCHIVE");
      expect(details["offset"]).toBeLessThanOrEqual(left);
    }
  });

  test("by frames left out, added or swapped is found", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    const sound = readFileSync(path);
    const places = await wholeFrames(path);
    const bytesOf = ({ offset, endOffset }: PlacedFrame): Buffer =>
      sound.subarray(offset, endOffset);
    const [job, , piece, other] = places as [PlacedFrame, ...PlacedFrame[]];
    if (piece === undefined || other === undefined) throw new Error("no pieces");
    const before = sound.subarray(0, piece.offset);
    const after = sound.subarray(other.endOffset);
    const forgeries = {
      removed: [before, bytesOf(other), after],
      swapped: [before, bytesOf(other), bytesOf(piece), after],
      doubled: [before, bytesOf(piece), bytesOf(piece), bytesOf(other), after],
      appended: [sound, bytesOf(job)],
      "with a second end": [sound, bytesOf(places.at(-1) as PlacedFrame)],
      "with junk at the end": [sound, Buffer.of(0)],
    };
    for (const [name, parts] of Object.entries(forgeries)) {
      writeFileSync(path, Buffer.concat(parts));
      expect((await failure(path)).code, name).toBe("BAD_ARCHIVE");
    }
  });

  test("does not make it take more memory than a frame can have", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, []);
    const bytes = readFileSync(path).subarray(0, PREAMBLE_BYTES);
    writeFileSync(path, Buffer.concat([bytes, makeHeader(2 ** 32 - 1)]));
    const { code, details } = await failure(path);
    expect([code, details["offset"]]).toEqual(["BAD_ARCHIVE", PREAMBLE_BYTES]);
  });
});

test("a file of a newer version is told as such", async () => {
  const path = join(temporaryDirectory(), "file");
  await writeContainer(path, FRAMES);
  const bytes = readFileSync(path);
  bytes.writeUInt32BE(2, 8);
  bytes.writeUInt32BE(checksum(bytes.subarray(0, 12)), 12);
  writeFileSync(path, bytes);
  const { code, message } = await failure(path);
  expect(code).toBe("BAD_VERSION");
  expect(message).toBe(
    `${path}: expected format version 1; received 2. A newer pserver may read it.`,
  );
});

test("a file of another kind is refused as such", async () => {
  const path = join(temporaryDirectory(), "file");
  writeFileSync(path, "{}");
  expect((await failure(path)).message).toBe(
    `${path}, byte 0: expected a file of an archive; received something else`,
  );
});

describe("a file that is still being written", () => {
  test("gives the whole frames before a part of one", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    const { length } = readFileSync(path);
    const all = await wholeFrames(path);
    for (let left = length - 1; left >= PREAMBLE_BYTES; left--) {
      truncateSync(path, left);
      const whole = all.filter(({ endOffset }) => endOffset <= left);
      expect(await wholeFrames(path)).toEqual(whole);
    }
  });

  test("is read from the place of any frame", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    await using reader = await ContainerReader.open(path);
    const all = await wholeFrames(path);
    for (const placed of all) {
      expect(await reader.frameAt(placed.offset)).toEqual(placed);
      expect(await reader.offsetAfter(placed.offset)).toBe(placed.endOffset);
    }
  });

  test("does not hide damage before its last frame", async () => {
    const path = join(temporaryDirectory(), "file");
    await writeContainer(path, FRAMES);
    const bytes = readFileSync(path);
    bytes[PREAMBLE_BYTES + HEADER_BYTES + 20] = 0xff;
    writeFileSync(path, bytes);
    const found = await wholeFrames(path).catch(ensureError);
    expect(found).toMatchObject({ code: "BAD_ARCHIVE", details: { offset: PREAMBLE_BYTES } });
  });
});

test("parts that follow each other in a file are read one by one", async () => {
  const path = join(temporaryDirectory(), "file");
  await writeContainer(path, [...FRAMES, ...FRAMES, ...FRAMES.slice(0, 1)]);
  await using reader = await ContainerReader.open(path);
  const all = await wholeFrames(path);
  for (const [from, to] of [
    [0, FRAMES.length],
    [FRAMES.length, 2 * FRAMES.length],
    [2 * FRAMES.length, all.length - 1],
  ]) {
    const part: PlacedFrame[] = [];
    for await (const batch of reader.part(all[from ?? 0]?.offset)) part.push(...batch);
    expect(part).toEqual(all.slice(from, to));
  }
});

test("a message is at most as much longer than its data as the entries need", () => {
  const [record] = FRAMES.filter(({ kind }) => kind === "record");
  expect(encodeFrame(record as Frame).length).toBeLessThan(200);
});
