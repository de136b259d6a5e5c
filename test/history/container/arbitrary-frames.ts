import fc from "fast-check";
import type { Frame, JobFrame } from "../../../src/history/archive/frames.ts";

const seq = fc.integer({ min: 1, max: 2 ** 40 });
const shard = fc.integer({ min: 0, max: 255 });
const timeMs = fc.double({ min: 0, max: 4e12, noNaN: true });
const data = fc.uint8Array({ maxLength: 300 });

/** A file's first frame. */
const jobFrame: fc.Arbitrary<JobFrame> = fc.record({
  kind: fc.constant("job" as const),
  job: fc.stringMatching(/^[a-z]{1,10}$/),
  shards: fc.integer({ min: 1, max: 256 }),
  synchronization: fc.constantFrom(
    { mode: "async" as const },
    { mode: "ssp" as const, trainers: 3, staleness: 2 },
  ),
  archive: fc.constantFrom("", "an-archive"),
});

/** Any frame but the end. */
export const anyFrame: fc.Arbitrary<Frame> = fc.oneof(
  jobFrame,
  fc.record({ kind: fc.constant("piece" as const), shard, seq, data }),
  fc.record({
    kind: fc.constant("manifest" as const),
    ...{ shard, seq, timeMs, data, pieces: fc.array(seq, { maxLength: 5 }) },
  }),
  fc.record({
    kind: fc.constant("tape" as const),
    ...{ shard, seq, timeMs, data, number: seq },
  }),
  fc.record({
    ...{ kind: fc.constant("gap" as const), shard, generation: seq, firstSeq: seq, lastSeq: seq },
  }),
  fc.record({
    kind: fc.constant("record" as const),
    ...{ shard, seq, timeMs, data, generation: seq, subject: fc.string({ maxLength: 40 }) },
  }),
);
