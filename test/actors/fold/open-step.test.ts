// Proves what becomes of the gradients of a step: they are scaled and clipped one by one and added up
// in the order in which they came; the close applies their sum or mean once, by the rule, to the rows
// that they named; until then values and version stay. When a step closes is proved elsewhere.
import { describe, expect, test } from "vitest";
import {
  accumulateGradient,
  closeStep,
  type GradientChange,
} from "../../../src/actors/fold/apply-update.ts";
import { type BlockActor, slotPlan } from "../../../src/actors/fold/block-actor.ts";
import { BlockTable } from "../../../src/actors/fold/block-table.ts";
import { checkRecord } from "../../../src/actors/fold/check-update.ts";
import { DeclarationTable } from "../../../src/actors/fold/declaration-table.ts";

import { GuardTable } from "../../../src/actors/fold/guards/guard-table.ts";
import { RULES_1 } from "../../../src/actors/fold/rules.ts";

import { StepTable } from "../../../src/actors/fold/step-table.ts";
import { gradientScale } from "../../../src/actors/fold/update-rule.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { type ParameterConfig, toConfig } from "../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { readPartIndex } from "../../../src/protocol/messages/parts.ts";
import type { PushRecord } from "../../../src/protocol/messages/records.ts";
import { l2Norm } from "../../../src/protocol/tensor.ts";
import { slotsOf } from "./folded.ts";
import { floats, fullConfig, OPTIMIZERS } from "./optimizer-configs.ts";
import { type FloatData, KernelBlock } from "./reference/kernel-block.ts";

const SYNC = { mode: "sync", trainers: 3, backups: 0, reduce: "mean" } as const;

const NAME = { parameter: "w", index: 0, number: 1 };

/** A block of a job in steps, and what is told before it changes. */
class SteppedBlock {
  readonly memory: ShardMemory = ShardMemory.create();
  readonly told: number[] = [];
  readonly blocks: BlockTable = new BlockTable(this.memory, {
    beforeChange: (block) => this.told.push(block.accumulated),
  });
  readonly block: BlockActor;

  constructor(config: ParameterConfig, values: FloatData, shape: readonly number[]) {
    const dtype = values instanceof Float32Array ? "float32" : "float64";
    const owner = { dtype, shape, start: 0, count: values.length, config } as const;
    const header = { ...owner, ...NAME, epoch: 1, version: 1, updates: 0 };
    this.block = this.blocks.put(header, slotPlan(owner, SYNC), (block) =>
      block.values().set(new Uint8Array(values.buffer)),
    );
  }

  /** Adds a gradient, of all rows or of some. */
  add(trainer: string, gradient: FloatData, rows?: readonly number[], lr?: number): void {
    accumulateGradient(this, trainer, this.checked(gradient, rows, lr));
  }

  checked(gradient: FloatData, rows?: readonly number[], lr?: number): GradientChange {
    const numbers = Uint32Array.from(rows ?? []);
    const indexBytes = Math.ceil(numbers.length / 2) * 8;
    const data = new Uint8Array(indexBytes + gradient.byteLength);
    data.set(new Uint8Array(numbers.buffer));
    data.set(new Uint8Array(gradient.buffer, gradient.byteOffset, gradient.byteLength), indexBytes);
    const record: PushRecord = {
      ...{ verb: "push", session: 1, n: 1, done: 0, reply: "", epoch: 1 },
      dtype: this.block.dtype,
      norm: l2Norm(gradient),
      operation: lr === undefined ? { op: "grad" } : { op: "grad", lr },
      ...(rows === undefined ? {} : { part: { rows: rows.length } }),
    };
    const context = {
      memory: this.memory,
      blocks: this.blocks,
      rules: RULES_1,
      steps: new StepTable(),
      declarations: new DeclarationTable(0),
      guards: new GuardTable(),
      seq: 1,
      judged: [],
      trainer: "nobody",
      isAnswerable: true,
      readIndex: readPartIndex,
      added: { bytes: 0, count: 0 },
      fault: { entry: undefined },
    };
    return checkRecord(context, this.block, record, data) as GradientChange;
  }

  close(divisor: number): void {
    closeStep(this, this.blocks.all(), divisor);
  }
}

/** A gradient as the fold scales and clips it. */
function shaped(config: ParameterConfig, gradient: FloatData): FloatData {
  const round = gradient instanceof Float32Array ? Math.fround : (x: number) => x;
  const scale = round(gradientScale(config, l2Norm(gradient)));
  const { clipValue = Number.POSITIVE_INFINITY } = config;
  return gradient.map((x) => Math.max(-clipValue, Math.min(round(scale * x), clipValue)));
}

/** A tensor that takes gradients which have been scaled and clipped. */
function plainBlock(config: ParameterConfig, values: FloatData): KernelBlock {
  const { clipNorm: _clipNorm, clipValue: _clipValue, ...rest } = config;
  return new KernelBlock({ ...rest, gradientScale: 1 }, values);
}

/** Sums in the order of the list, divided as the fold divides. */
function reduced(gradients: readonly FloatData[], divisor: number): FloatData {
  const round = gradients[0] instanceof Float32Array ? Math.fround : (x: number) => x;
  const sum = (gradients[0] as FloatData).slice();
  for (const gradient of gradients.slice(1)) {
    for (const [i, value] of gradient.entries()) sum[i] = (sum[i] ?? 0) + value;
  }
  const share = round(1 / divisor);
  return divisor === 1 ? sum : sum.map((value) => round(share * value));
}

function expectColumns(block: BlockActor, plain: KernelBlock): void {
  for (let slot = 0; slot < plain.columns; slot++) {
    const wanted = bytesOf(plain.column(slot));
    expect([slot, Buffer.compare(block.slotBytes(slot), wanted)]).toEqual([slot, 0]);
  }
  const [sum] = slotsOf(block).slice(plain.columns);
  expect(sum?.every((byte) => byte === 0)).toBe(true);
}

describe.each(OPTIMIZERS)("%s", (optimizer) => {
  test.each(["float32", "float64"] as const)("applies the mean and the sum of %s", (dtype) => {
    const length = 20_003;
    const config = fullConfig(optimizer);
    const stepped = new SteppedBlock(config, floats(dtype, length, 0), [length]);
    const plain = plainBlock(config, floats(dtype, length, 0));
    for (const [step, divisor] of [3, 1, 3].entries()) {
      const gradients = [1, 2, 3].map((trainer) => floats(dtype, length, 10 * step + trainer));
      for (const [i, gradient] of gradients.entries()) stepped.add(`t${i}`, gradient);
      stepped.close(divisor);
      const all = gradients.map((gradient) => shaped(config, gradient));
      plain.push(reduced(all, divisor), { norm: 0 });
    }
    expectColumns(stepped.block, plain);
    expect(stepped.block).toMatchObject({ version: 4, updates: 3 });
  });
});

describe("an open step", () => {
  const start = floats("float32", 6, 0);
  const stepped = (settings: object = {}): SteppedBlock =>
    new SteppedBlock(fullConfig("adam", settings), start, [3, 2]);

  test("changes neither values nor version, knows who has sent, and closes once", () => {
    const target = stepped();
    const { block, told } = target;
    target.add("a", floats("float32", 6, 1));
    target.add("b", floats("float32", 6, 2));
    expect(block.values()).toEqual(new Uint8Array(start.buffer));
    expect(block).toMatchObject({ version: 1, updates: 0, accumulated: 2 });
    expect(block.header().open).toEqual({ trainers: ["a", "b"] });
    target.close(2);
    expect(block).toMatchObject({ version: 2, updates: 1, accumulated: 0 });
    expect(block.header().open).toBeUndefined();
    const after = block.values().slice();
    target.close(2);
    expect(block.values()).toEqual(after);
    expect(block.version).toBe(2);
    expect(told).toEqual([0, 1, 2]);
  });

  test("has one learning rate: that of its first gradient", () => {
    const target = stepped();
    target.add("a", floats("float32", 6, 1), undefined, 0.5);
    expect(target.block.header().open).toEqual({ trainers: ["a"], learningRate: 0.5 });
    for (const rate of [undefined, 0.25]) {
      expect(() => target.checked(floats("float32", 6, 2), undefined, rate)).toThrow(
        expect.objectContaining({ code: "BAD_VALUE" }),
      );
    }
    target.add("b", floats("float32", 6, 2), undefined, 0.5);
    target.close(1);
    const { config } = target.block;
    const plain = plainBlock(config, start);
    const gradients = [1, 2].map((seed) => shaped(config, floats("float32", 6, seed)));
    plain.push(reduced(gradients, 1), { norm: 0, learningRate: 0.5 });
    expectColumns(target.block, plain);
    target.checked(floats("float32", 6, 3));
  });

  test("of a sparse parameter applies the rows that its gradients named, and no other", () => {
    const config = fullConfig("adam", { sparse: true });
    const target = new SteppedBlock(config, start, [3, 2]);
    const rows = [0, 1, 2].map((row) => plainBlock(config, start.slice(2 * row, 2 * row + 2)));
    const [first, second] = [floats("float32", 4, 1), floats("float32", 2, 2)];
    target.add("a", first, [0, 2]);
    target.add("b", second, [2]);
    target.close(2);
    const all = shaped(config, first);
    rows[0]?.push(reduced([all.slice(0, 2)], 2), { norm: 0 });
    rows[2]?.push(reduced([all.slice(2), shaped(config, second)], 2), { norm: 0 });
    for (const slot of [0, 1, 2]) {
      const wanted = Buffer.concat(rows.map((row) => bytesOf(row.column(slot))));
      expect([slot, Buffer.compare(target.block.slotBytes(slot), wanted)]).toEqual([slot, 0]);
    }
    const [, , , counts, sum, touched] = slotsOf(target.block);
    expect([...new Uint32Array((counts ?? new Uint8Array(0)).slice().buffer)]).toEqual([1, 0, 1]);
    expect([...(sum ?? [1]), ...(touched ?? [1])].every((byte) => byte === 0)).toBe(true);
  });

  test.each([
    [3_000, 3],
    [40, 64],
    [40, 65],
    [5, 256],
    [5, 257],
  ])(
    "of a sparse parameter of %i rows of %i updates those named, in whichever steps",
    (rows, width) => {
      const config = fullConfig("adam", { sparse: true });
      const values = floats("float32", rows * width, 0);
      const target = new SteppedBlock(config, values, [rows, width]);
      const rowOf = (data: FloatData, row: number): FloatData =>
        data.slice(row * width, (row + 1) * width);
      const memory = ShardMemory.create();
      const { clipNorm: _norm, clipValue: _value, ...rest } = config;
      const own = { ...rest, gradientScale: 1 };
      const plain = Array.from(
        { length: rows },
        (_, row) => new KernelBlock(own, rowOf(values, row), memory),
      );
      const counts = new Array<number>(rows).fill(0);
      for (const every of [1, 2, 3]) {
        const gradients = ["a", "b"].map((trainer, i) => {
          const named = plain.flatMap((_, row) => ((row + i) % every === 0 ? [row] : []));
          const gradient = floats("float32", named.length * width, every + i);
          target.add(trainer, gradient, named);
          return { named, all: shaped(config, gradient) };
        });
        target.close(2);
        for (const [row, block] of plain.entries()) {
          const parts = gradients.flatMap(({ named, all }) =>
            named.includes(row) ? [rowOf(all, named.indexOf(row))] : [],
          );
          if (parts.length === 0) continue;
          block.push(reduced(parts, 2), { norm: 0 });
          counts[row] = (counts[row] ?? 0) + 1;
        }
      }
      for (const slot of [0, 1, 2]) {
        const wanted = Buffer.concat(plain.map((row) => bytesOf(row.column(slot))));
        expect([slot, Buffer.compare(target.block.slotBytes(slot), wanted)]).toEqual([slot, 0]);
      }
      const [, , , updates, sum, touched] = slotsOf(target.block);
      expect([...new Uint32Array((updates ?? new Uint8Array(0)).slice().buffer)]).toEqual(counts);
      expect([...(sum ?? [1]), ...(touched ?? [1])].every((byte) => byte === 0)).toBe(true);
    },
  );

  test("of a sparse parameter takes a dense gradient for one of all rows", () => {
    const target = new SteppedBlock(toConfig({ sparse: true, learningRate: 1 }), start, [3, 2]);
    target.add("a", floats("float32", 6, 1));
    target.close(1);
    const counts = target.block.slotBytes(1).slice();
    expect([...new Uint32Array(counts.buffer)]).toEqual([1, 1, 1]);
  });
});
