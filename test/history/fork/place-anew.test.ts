// Proves that blocks that are placed anew on another number of shards keep values, versions and what optimizers keep,
// that each is where its layout says and declared there, and that an open step and what was not initialized as a whole
// stay behind.
import { describe, expect, test } from "vitest";
import { keptSlots, slotPlan } from "../../../src/actors/fold/block-actor.ts";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import { PlacedShards } from "../../../src/history/continue/place-anew.ts";
import {
  LocalReplayedShard,
  type ReplayedShard,
} from "../../../src/history/replay/replayed-model.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import { toSynchronization } from "../../../src/protocol/config/index.ts";
import { blockPlaces } from "../../../src/protocol/index.ts";
import { Folded } from "../../actors/fold/folded.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import { fullConfig } from "../../actors/fold/optimizer-configs.ts";

const { signal } = new AbortController();
const SYNC = toSynchronization({ mode: "sync", trainers: 2 });
const NAMES = Array.from({ length: 9 }, (_, i) => `p${i}`);

/** A shard with parameters of one block, one of which has a gradient of an open step, and half of another one. */
function trained(): Folded {
  const folded = new Folded({ mode: "sync", trainers: 2 });
  folded.journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "bob"] });
  for (const [i, parameter] of NAMES.entries()) {
    const config = fullConfig("adam");
    folded.journal.init(Float32Array.of(i, 1, 2), { parameter, config });
  }
  for (const parameter of NAMES) {
    for (const trainer of ["alice", "bob"]) {
      const grad = { op: "grad", step: 1 } as const;
      folded.journal.push(Float32Array.of(1, 2, 3), grad, { trainer, parameter });
    }
  }
  for (const trainer of ["alice", "bob"]) folded.journal.clock(trainer, 1);
  const open = { op: "grad", step: 2 } as const;
  folded.journal.push(Float32Array.of(1, 2, 3), open, { parameter: "p0" });
  folded.journal.init(Float32Array.of(1, 2), { parameter: "half", shape: [3], count: 2 });
  folded.apply();
  return folded;
}

function replayed({ shard }: Folded): ReplayedShard {
  return new LocalReplayedShard(shard, 1, { shard: SHARD } as ShardHistory, signal);
}

async function placed(
  from: Folded,
  shards: number,
): Promise<{ made: Shard[]; plan: PlacedShards }> {
  const job = { subjects: SUBJECTS, shards, synchronization: SYNC };
  const plan = await PlacedShards.plan([replayed(from)], job);
  const made: Shard[] = [];
  for (let shard = 0; shard < shards; shard++) made.push(await plan.make(shard));
  return { made, plan };
}

describe.each([1, 3])("blocks on %i shards", (shards) => {
  test("are as they were, each where its layout says", async () => {
    const from = trained();
    const { made, plan } = await placed(from, shards);
    expect(plan.openBlocks).toBe(1);
    for (const parameter of NAMES) {
      const block = from.block(parameter);
      const holders = made.filter((shard) => shard.block(parameter, 0) !== undefined);
      const [holder] = holders;
      expect(holders).toHaveLength(1);
      const copy = holder?.block(parameter, 0);
      const { version, updates, number, epoch } = block;
      expect(copy).toMatchObject({ version, updates, number, epoch });
      const all = slotPlan(block, SYNC);
      for (let slot = 0; slot <= keptSlots(all); slot++) {
        expect(copy?.slotBytes(slot)).toEqual(block.slotBytes(slot));
      }
      expect(copy?.accumulated).toBe(0);
      expect(copy?.slotBytes(all.accumulator ?? 0)).toEqual(new Uint8Array(12));
      const declared = holder?.saveState().declared?.find(({ name }) => name === parameter);
      expect(declared?.layout.shards).toBe(shards);
      const [place] = declared === undefined ? [] : blockPlaces(declared.layout);
      expect(made[place?.shard ?? -1]).toBe(holder);
    }
  });

  test("leave what was not initialized as a whole behind, but for its epoch", async () => {
    const { made } = await placed(trained(), shards);
    expect(made.every((shard) => shard.block("half", 0) === undefined)).toBe(true);
    const known = made.flatMap((shard) => shard.saveState().declared ?? []);
    expect(known.filter(({ name }) => name === "half")[0]).toMatchObject({ epoch: 1 });
  });
});
