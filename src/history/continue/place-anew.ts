import { type BlockHeader, keptSlots, slotPlan } from "../../actors/fold/block-actor.ts";
import type { FoldState } from "../../actors/fold/fold-state.ts";
import { FragmentTable } from "../../actors/fold/fragments/fragment-table.ts";
import { CURRENT_RULES } from "../../actors/fold/rules.ts";
import { Shard } from "../../actors/fold/shard.ts";
import { StepTable } from "../../actors/fold/step-table.ts";
import { SmallParameters } from "../../actors/lifecycle/declare.ts";
import { shardBytes } from "../../actors/lifecycle/parameter.ts";
import {
  blockPlace,
  type DeclaredParameter,
  hashName,
  type JobSubjects,
  PserverError,
  pinToFragment,
  SHARD_BYTES_MAX,
  type Synchronization,
  shardsOfBlocks,
} from "../../protocol/index.ts";
import type { ReplayedShard } from "../replay/replayed-model.ts";
import { FoundParameters } from "./fork-job.ts";

/** The job whose shards are made. */
export interface PlacedJob {
  readonly subjects: JobSubjects;
  readonly shards: number;
  readonly synchronization: Synchronization;
}

/** A block, and the shard that has it now. */
interface HeldBlock extends BlockHeader {
  readonly from: ReplayedShard;
}

/** What a new shard begins with. */
interface PlacedShard {
  readonly blocks: readonly HeldBlock[];
  readonly declared: readonly DeclaredParameter[];
}

/**
 * Places the blocks of replayed shards anew, on another number of shards, as if they had been declared there: the cut
 * into blocks, their numbers, values, versions and optimizer slots stay. Of a parameter whose initialization had not
 * been finished only the epoch stays.
 */
export class PlacedShards {
  /** Number of blocks with gradients of an open step, which are left out. */
  readonly openBlocks: number;
  readonly #job: PlacedJob;
  readonly #shards: readonly PlacedShard[];

  private constructor(job: PlacedJob, shards: readonly PlacedShard[]) {
    this.#job = job;
    this.#shards = shards;
    const blocks = shards.flatMap((shard) => shard.blocks);
    this.openBlocks = blocks.filter(({ open }) => open !== undefined).length;
  }

  /** Plans the shards of a job. @throws TOO_LARGE if one of them could not hold its part; errors of the replay. */
  static async plan(replayed: readonly ReplayedShard[], job: PlacedJob): Promise<PlacedShards> {
    const { shards, synchronization } = job;
    const found = new FoundParameters();
    const trainers = new Map<string, string>();
    const held = new Map<string, HeldBlock[]>();
    for (const from of replayed) {
      const { parameters: declared } = await from.known();
      found.add({ blocks: from.blocks, declared });
      for (const { name, epoch, trainer } of declared) trainers.set(`${epoch} ${name}`, trainer);
      for (const block of from.blocks) {
        const own = held.get(block.parameter);
        if (own === undefined) held.set(block.parameter, [{ ...block, from }]);
        else own.push({ ...block, from });
      }
    }
    const small = new SmallParameters(shards);
    const byNumber = found.parameters().sort((a, b) => a.firstNumber - b.firstNumber);
    const placed = byNumber.map((parameter) => {
      const { declaration, layout } = parameter;
      const { name, config } = declaration;
      const spread = { ...layout, shards, firstShard: hashName(name) % shards };
      const hashed =
        config.fragment === undefined ? spread : pinToFragment(spread, config.fragment);
      const initialization = { session: 0, epoch: 0 };
      return { ...parameter, layout: small.place(hashed, declaration, initialization) };
    });
    checkFits(shardBytes(placed, { shards, synchronization }));
    const parts = Array.from({ length: shards }, () => ({
      blocks: [] as HeldBlock[],
      declared: [] as DeclaredParameter[],
    }));
    for (const { declaration, layout, firstNumber, lifecycle } of placed) {
      const { name } = declaration;
      const { epoch } = lifecycle.context;
      const trainer = trainers.get(`${epoch} ${name}`) ?? "";
      for (const shard of shardsOfBlocks(layout, 0, layout.blocks)) {
        parts[shard]?.declared.push({ ...declaration, epoch, layout, firstNumber, trainer });
      }
      if (lifecycle.state !== "ready") continue;
      for (const block of held.get(name) ?? []) {
        if (block.epoch !== epoch) continue;
        parts[blockPlace(layout, block.index).shard]?.blocks.push(block);
      }
    }
    return new PlacedShards(job, parts);
  }

  /** Makes one of the shards; its bytes are copied. @throws errors of the replay. */
  async make(number: number): Promise<Shard> {
    const { subjects, synchronization } = this.#job;
    const { blocks, declared } = this.#shards[number] ?? { blocks: [], declared: [] };
    const { mode } = synchronization;
    const steps = mode === "async" ? {} : { steps: new StepTable().save() };
    const fragments =
      mode === "diloco" ? { fragments: new FragmentTable(subjects.job).save() } : {};
    const state: FoldState = {
      ...{ format: 1, seq: 0, crc: 0, rules: CURRENT_RULES, synchronization },
      ...{ ...steps, ...fragments },
      ...{ floor: 0, unreadable: 0, trainers: [], declared },
      blocks: blocks.map(({ open: _open, from: _from, ...header }) => header),
    };
    const shard = Shard.restoreEmpty({ subjects, shard: number }, state);
    for (const block of blocks) {
      const { parameter, index, from } = block;
      const plan = slotPlan(block, synchronization);
      for (let slot = 0; slot <= plan.bytes.length; slot++) {
        // What comes after is of a step that is open, and a new block has zeros there.
        const bytes =
          slot <= keptSlots(plan)
            ? await from.slot(parameter, index, slot)
            : new Uint8Array(plan.bytes[slot - 1] ?? 0);
        shard.loadSlot(parameter, index, slot, bytes);
      }
    }
    shard.checkLoaded();
    return shard;
  }
}

function checkFits(bytes: readonly number[]): void {
  const most = Math.max(...bytes);
  if (most <= SHARD_BYTES_MAX) return;
  throw new PserverError(
    "TOO_LARGE",
    `${bytes.length} shards: expected at most ${SHARD_BYTES_MAX} bytes of values and slots in each; ` +
      `one would have ${most}: choose more shards`,
    { expected: SHARD_BYTES_MAX, received: most },
  );
}
