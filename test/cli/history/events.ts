import type { UpdateEvent } from "../../../src/actors/journal/describe-record.ts";

/** A gradient of one block, or what the entries say. */
export function event(more: Partial<UpdateEvent> = {}): UpdateEvent {
  return {
    ...{ timeMs: Date.UTC(2026, 10, 23, 4, 12, 7, 250), shard: 3, generation: 1, seq: 1200 },
    ...{ entry: 0, entries: 1, verb: "push", outcome: { kind: "applied" } },
    ...{ trainer: "trainer-2", session: 8, n: 1042 },
    block: {
      ...{ parameter: "fc1.weight", index: 0, operation: { op: "grad", lr: 0.1 } },
      ...{ dtype: "float32", encoding: undefined, part: undefined, elements: 3000, bytes: 12_000 },
      statistics: { norm: 15.94, min: -0.5, max: 0.4996, mean: 0.000_448, zeros: 30, nonFinite: 0 },
      ...{ version: 17, behind: 2 },
    },
    ...more,
  };
}

/** A note of a trainer. */
export function note(
  entries: NonNullable<UpdateEvent["note"]>,
  more: Partial<UpdateEvent> = {},
): UpdateEvent {
  const { block: _block, ...rest } = event();
  return { ...rest, verb: "note", note: entries, ...more };
}
