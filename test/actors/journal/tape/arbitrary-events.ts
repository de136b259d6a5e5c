import fc from "fast-check";
import type { BlockChange } from "../../../../src/actors/journal/block-change.ts";
import type { UpdateEvent } from "../../../../src/actors/journal/describe-record.ts";
import { TAPE_DTYPES, TAPE_ENCODINGS } from "../../../../src/actors/journal/tape/tape-encoder.ts";

export const SHARD = 3;

const float = fc.double({ noNaN: true, noDefaultInfinity: true });
const count = fc.integer({ min: 0, max: 2 ** 40 });
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });

const operation: fc.Arbitrary<BlockChange["operation"]> = fc.oneof(
  fc.constant({ op: "init" } as const),
  fc.constant({ op: "set" } as const),
  fc.record({ op: fc.constant("mix" as const), alpha: float, beta: float }),
  fc.record({ op: fc.constant("grad" as const), lr: maybe(float) }),
);

const statistics = fc
  .record({ norm: float, min: float, max: float, mean: float, zeros: count, nonFinite: count })
  .map(({ norm, ...rest }) => ({ norm: Math.abs(norm), ...rest }));

const part = fc.oneof(
  fc.record({ rows: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ rows: fc.integer({ min: 1, max: 9 }), inner: fc.integer({ min: 1, max: 9 }) }),
);

const block: fc.Arbitrary<BlockChange> = fc.record({
  parameter: name,
  index: fc.nat(300),
  operation,
  dtype: fc.constantFrom(...TAPE_DTYPES),
  encoding: fc.constantFrom(...TAPE_ENCODINGS),
  part: maybe(part),
  elements: count,
  bytes: count,
  statistics: maybe(
    fc.oneof(
      statistics,
      fc.constant({
        ...{ norm: 0, min: undefined, max: undefined, mean: undefined, zeros: 0, nonFinite: 3 },
      }),
    ),
  ),
  version: maybe(count),
  behind: maybe(count),
});

const positive = fc.double({ min: 1e-300, noNaN: true, noDefaultInfinity: false });

/** What a guard has decided, about the first entry of its record or another one. */
const guard = fc.record({
  action: fc.constantFrom("reject" as const, "clip" as const, "set-aside" as const),
  ...{ norm: positive, limit: positive, median: positive, norms: count, others: count },
  entry: fc.nat(5),
});

const outcome: fc.Arbitrary<UpdateEvent["outcome"]> = fc.oneof(
  fc.constant({ kind: "applied" } as const),
  fc.record({
    ...{ kind: fc.constant("rejected" as const), code: fc.constantFrom("NON_FINITE", "LATE") },
    message: fc.string({ maxLength: 30 }),
  }) as fc.Arbitrary<UpdateEvent["outcome"]>,
  fc.record({ kind: fc.constant("repeated" as const), seq: count }),
);

/** What a record is but for its place: several entries, or none. */
const content = fc.oneof(
  fc.record({
    kind: fc.constant("blocks" as const),
    blocks: fc.array(block, { minLength: 1, maxLength: 6 }),
  }),
  fc.record({
    kind: fc.constant("note" as const),
    note: fc.dictionary(
      name.filter((key) => key !== "__proto__"),
      // MessagePack has no integer −0.
      float.map((number) => number + 0),
      { minKeys: 1, noNullPrototype: true },
    ),
  }),
  fc.record({ kind: fc.constant("clock" as const), step: fc.nat(9_999) }),
  fc.record({ kind: fc.constant("unreadable" as const), bytes: fc.nat(9_999) }),
);

const record = fc.record({
  content,
  outcome,
  trainer: name,
  session: fc.integer({ min: 1, max: 9 }),
  n: fc.integer({ min: 1, max: 2 ** 40 }),
  skips: fc.integer({ min: 1, max: 3 }),
  laterUs: fc.integer({ min: -50, max: 5_000_000 }),
  step: maybe(fc.nat(99)),
  guard: maybe(guard),
});

/** Records of one shard with their updates, in the order of their sequences. */
export const recordsOfShard: fc.Arbitrary<readonly (readonly UpdateEvent[])[]> = fc
  .array(record, { minLength: 1, maxLength: 12 })
  .map((records) => {
    let seq = 0;
    let timeUs = 1_700_000_000_000_000;
    return records.map(
      ({ content: what, outcome: told, trainer, session, n, skips, laterUs, step, guard: by }) => {
        seq += skips;
        timeUs += laterUs;
        const isKnown = what.kind !== "unreadable";
        // What is set aside is told in one event.
        const isOne = what.kind === "note" || (what.kind === "blocks" && what.blocks.length === 1);
        const isAside = isOne && by?.action === "set-aside" && told.kind === "applied";
        const given = isAside ? ({ kind: "set-aside" } as const) : told;
        const mark = by && (isOne ? { ...by, entry: 0 } : { ...by, action: "clip" as const });
        const place = { timeMs: timeUs / 1000, shard: SHARD, generation: 2, seq };
        const sender = isKnown
          ? { trainer, session, n }
          : { trainer, session: undefined, n: undefined };
        const rest = { step: undefined, block: undefined, note: undefined, bytes: undefined };
        const base = {
          ...place,
          ...sender,
          ...rest,
          entry: 0,
          entries: 1,
          outcome: isKnown ? given : ({ kind: "unreadable" } as const),
        };
        if (what.kind === "note") {
          return [{ ...base, verb: "note" as const, note: what.note, guard: mark }];
        }
        if (what.kind === "clock") return [{ ...base, verb: "clock" as const, step: what.step }];
        if (what.kind === "unreadable")
          return [{ ...base, verb: "unreadable" as const, bytes: what.bytes }];
        return what.blocks.map((each, entry): UpdateEvent => {
          const { op } = each.operation;
          const verb = op === "mix" || op === "grad" ? "push" : op;
          return {
            ...base,
            verb,
            entry,
            entries: what.blocks.length,
            block: each,
            guard: mark?.entry === entry && entry < what.blocks.length ? mark : undefined,
            step: op === "grad" ? step : undefined,
          };
        });
      },
    );
  });

/** As a tape keeps it: norm and mean of float32 elements as float32. */
export function asKept(event: UpdateEvent): UpdateEvent {
  const { block: change } = event;
  const known = change?.statistics;
  if (change === undefined || known === undefined) return event;
  if (change.dtype !== "float32" || known.norm > 3.4028234663852886e38) return event;
  const rounded = (value: number | undefined): number | undefined => value && Math.fround(value);
  const { norm, min, max, mean } = known;
  return {
    ...event,
    block: {
      ...change,
      statistics: {
        ...known,
        norm: Math.fround(norm),
        min: rounded(min),
        max: rounded(max),
        mean: rounded(mean),
      },
    },
  };
}
