// Proves that saved state and slots are the whole state: for every optimizer, dense and sparse, in every mode
// and in the middle of a step, a restored shard has the same digest and continues with the same answers to
// the same digest; and that slots that are missing, too many or too short are refused.

import { describe, expect, test } from "vitest";
import { CURRENT_RULES } from "../../../src/actors/fold/rules.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { toSynchronization } from "../../../src/protocol/config/index.ts";
import { Folded, limitedRules, slotsOf } from "./folded.ts";
import { SHARD, SUBJECTS } from "./journal-writer.ts";
import { fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";

const OPTIONS = { subjects: SUBJECTS, shard: SHARD };
const MODES: SynchronizationInput[] = [
  "async",
  { mode: "ssp", trainers: 2, staleness: 1 },
  { mode: "sync", trainers: 2 },
];
const TRAINERS = ["alice", "bob"];

/** A shard of one dense and one sparse parameter, and pushes of the given step. */
function begun(optimizer: (typeof OPTIMIZERS)[number], mode: SynchronizationInput): Folded {
  const folded = new Folded(mode);
  folded.journal.host({ verb: "members", revision: 1, started: true, trainers: TRAINERS });
  for (const sparse of [false, true]) {
    const parameter = sparse ? "emb" : "w";
    const config = fullConfig(optimizer, { sparse });
    folded.journal.init(numbers(12, 1), { parameter, config, shape: [4, 3] });
  }
  return folded;
}

function pushAll(folded: Folded, mode: SynchronizationInput, round: number, trainer: string): void {
  const step = toSynchronization(mode).mode === "sync" ? { step: 1 } : {};
  const rows = Uint32Array.of(round % 2, 2);
  folded.journal.push(numbers(12, round), { op: "grad", ...step }, { trainer });
  folded.journal.push(
    numbers(6, round),
    { op: "grad", ...step },
    { parameter: "emb", trainer, part: { rows } },
  );
}

function numbers(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => (((i + 2) * (seed + 5)) % 13) / 4 - 1.5);
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each(MODES)("continues from a saved state under %j", (mode) => {
    const folded = begun(optimizer, mode);
    pushAll(folded, mode, 1, "alice");
    folded.apply();
    const again = folded.restored();
    expect(again.digest()).toBe(folded.shard.digest());
    expect(again.synchronization).toEqual(toSynchronization(mode));
    pushAll(folded, mode, 2, "bob");
    folded.journal.push(numbers(12, 3), { op: "mix", alpha: 0.5, beta: 0.5 });
    for (const record of folded.journal.records.slice(again.seq)) {
      const answer = folded.shard.apply(record);
      expect(answer?.outcome.code).toBeUndefined();
      expect(again.apply(record)).toEqual(answer);
    }
    expect(again.digest()).toBe(folded.shard.digest());
  });
});

describe("the digest", () => {
  test("tells shards apart that differ in a slot only", () => {
    const [one, other] = [begun("adam", "async"), begun("adam", "async")];
    one.apply();
    other.apply();
    expect(one.shard.digest()).toBe(other.shard.digest());
    slotsOf(other.block("w"))[2]?.fill(1, 0, 1);
    expect(one.shard.digest()).not.toBe(other.shard.digest());
  });
});

describe("a saved state", () => {
  const saved = (mode: SynchronizationInput = "async"): Record<string, unknown> => {
    const folded = begun("adam", mode);
    pushAll(folded, mode, 1, "alice");
    folded.apply();
    return unpackValue(packValue(folded.shard.saveState())) as Record<string, unknown>;
  };
  const sizes = [48, 48, 48, 16];
  const loaded = (
    state: unknown,
    slots: readonly (readonly [slot: number, bytes: number])[],
  ): Shard => {
    const shard = Shard.restoreEmpty(OPTIONS, state);
    for (const [slot, bytes] of slots) shard.loadSlot("emb", 0, slot, new Uint8Array(bytes));
    for (const slot of [0, 1, 2]) shard.loadSlot("w", 0, slot, new Uint8Array(48));
    shard.checkLoaded();
    return shard;
  };
  const all = sizes.map((bytes, slot) => [slot, bytes] as const);

  test("takes the slots in any order", () => {
    expect(loaded(saved(), [...all].reverse()).block("emb", 0)?.heldBytes).toBe(160);
  });

  test.each<[string, readonly (readonly [number, number])[], RegExp]>([
    ["a slot is missing", all.slice(0, 3), /"emb" block 0: the bytes of slots 3 are not in/],
    ["a slot is too many", [...all, [4, 16]], /expected slots up to 3; received slot 4/],
    ["a slot has the length of another", [[3, 48]], /slot 3: expected 16 bytes; received 48/],
  ])("is refused if %s", (_what, slots, message) => {
    expect(() => loaded(saved(), slots)).toThrow(
      expect.objectContaining({
        code: "SNAPSHOT_DAMAGED",
        message: expect.stringMatching(message),
      }),
    );
  });

  test.each<[string, object, RegExp]>([
    ["nobody in it", { trainers: [] }, /expected trainers, each once/],
    ["a trainer in it twice", { trainers: ["a", "a"] }, /expected trainers, each once/],
    ["a trainer in it who is none", { trainers: [7] }, /trainer/],
    ["a rate that is none", { trainers: ["a"], learningRate: "x" }, /learningRate/],
  ])("is refused if it has an open step with %s", (_what, open, message) => {
    const state = saved({ mode: "sync", trainers: 2 });
    const blocks = (state["blocks"] as object[]).map((block) => ({ ...block, open }));
    expect(() => Shard.restoreEmpty(OPTIONS, { ...state, blocks })).toThrow(
      expect.objectContaining({
        code: "SNAPSHOT_DAMAGED",
        message: expect.stringMatching(message),
      }),
    );
  });

  test("is refused if it has an open step in a job without steps", () => {
    const state = saved();
    const open = { trainers: ["a"] };
    const blocks = (state["blocks"] as object[]).map((block) => ({ ...block, open }));
    expect(() => Shard.restoreEmpty(OPTIONS, { ...state, blocks })).toThrow(/no open step/);
  });

  test("is refused if its blocks have more slots than a shard may hold", () => {
    const knownRules = limitedRules({ shardBytesMax: 303 });
    expect(() => Shard.restoreEmpty({ ...OPTIONS, knownRules }, saved())).toThrow(
      /more than a shard may hold/,
    );
    const roomy = limitedRules({ shardBytesMax: 304 });
    expect(Shard.restoreEmpty({ ...OPTIONS, knownRules: roomy }, saved()).valueBytes).toBe(304);
  });

  test("is refused if a sparse block is cut inside a row", () => {
    const state = saved();
    const blocks = (state["blocks"] as object[]).map((block) => ({ ...block, shape: [2, 7] }));
    expect(() => Shard.restoreEmpty(OPTIONS, { ...state, blocks })).toThrow(/contradicts itself/);
  });
});

test("the first rules record decides how trainers keep step, whatever later ones say", () => {
  const folded = new Folded({ mode: "sync", trainers: 2 });
  folded.journal.host({ verb: "rules", rules: CURRENT_RULES, synchronization: { mode: "async" } });
  folded.journal.host({ verb: "rules", rules: CURRENT_RULES });
  folded.run();
  expect(folded.shard.synchronization).toEqual(toSynchronization({ mode: "sync", trainers: 2 }));
  expect(folded.restored().synchronization).toEqual(folded.shard.synchronization);
});
