import { applyGradient } from "../src/actors/fold/apply-update.ts";
import { BlockActor, slotPlan } from "../src/actors/fold/block-actor.ts";
import { ShardMemory } from "../src/actors/kernel/shard-memory.ts";
import { ElementReader } from "../src/actors/owner/element-reader.ts";
import { sumRows } from "../src/client/push/block-updates.ts";
import { toConfig } from "../src/protocol/config/index.ts";
import { readPartIndex, writePartIndex } from "../src/protocol/messages/parts.ts";

const BLOCK_BYTES = 1024 * 1024;
/** Elements of the rows of one record, so that records of short and of long rows take alike long. */
const RECORD_ELEMENTS = 32 * 1024;
const ROW_ELEMENTS = [1, 8, 64, 1024] as const;
const MEASURE_MS = 150;

const OPTIMIZERS = [
  "none",
  "sgd",
  "momentum",
  "nesterov",
  "adagrad",
  "rmsprop",
  "adadelta",
  "adam",
  "adamw",
  "amsgrad",
  "ftrl",
] as const;

type Optimizer = (typeof OPTIMIZERS)[number];

/** One operation on rows of one length. */
export interface RowResult {
  readonly name: string;
  readonly rowElements: number;
  readonly nsPerRow: number;
}

/**
 * Measures how many nanoseconds a row takes hosts and trainers that handle lists of random rows of
 * a block of 1 MiB of float32: checking the list, reading rows, applying gradients by each
 * optimizer's rule, and adding up the gradients of rows that are named repeatedly.
 */
export function benchRows(): RowResult[] {
  return ROW_ELEMENTS.flatMap((rowElements) => benchLength(rowElements));
}

function benchLength(rowElements: number): RowResult[] {
  const rows = BLOCK_BYTES / 4 / rowElements;
  const named = Math.min(Math.floor(rows / 2), Math.ceil(RECORD_ELEMENTS / rowElements));
  const list = randomRows(rows, named);
  const result = (name: string, call: () => void): RowResult => {
    return { name, rowElements, nsPerRow: (bestMs(call) * 1e6) / named };
  };
  const index = new Uint8Array(named * 4 + 4);
  writePartIndex(index, { rows: list });
  const repeated = Float64Array.from({ length: named }, (_, i) => list[(i * 7919) % named] ?? 0);
  const gradient = new Float32Array(named * rowElements).fill(1e-3);
  return [
    result("check", () => void readPartIndex({ rows: named }, index, { rows, rowElements })),
    result("read", reading(rows, rowElements, list)),
    ...OPTIMIZERS.map((optimizer) =>
      result(`update, ${optimizer}`, updating(optimizer, rowElements, list, 1)),
    ),
    result("update, adam, 16 counts", updating("adam", rowElements, list, 16)),
    result("update, adam, any counts", updating("adam", rowElements, list, 50_000)),
    result("sum", () => void sumRows("float32", repeated, gradient, rowElements)),
  ];
}

function reading(rows: number, rowElements: number, list: Uint32Array): () => void {
  const { memory, block } = blockOf("sgd", rows, rowElements);
  const target = new Uint8Array(list.length * rowElements * 4);
  return () => new ElementReader(memory, block, { part: { rows: list } }).read(target);
}

/**
 * Makes a measurement of updates of rows; `counts` is how many different numbers of updates rows
 * have had before.
 */
function updating(
  optimizer: Optimizer,
  rowElements: number,
  list: Uint32Array,
  counts: number,
): () => void {
  const { memory, block } = blockOf(optimizer, BLOCK_BYTES / 4 / rowElements, rowElements);
  const slot = block.slotBytes(block.plan.counts ?? 0);
  const before = new Uint32Array(slot.buffer, slot.byteOffset, slot.length / 4);
  before.forEach((_, row) => {
    before[row] = (row * 7919) % counts;
  });
  const bytes = new Uint8Array(new Float32Array(list.length * rowElements).fill(1e-3).buffer);
  const change = {
    kind: "gradient",
    block,
    payload: { dtype: "float32", bytes },
    part: { rows: list },
    norm: undefined,
    operation: { op: "grad" },
    behind: 1,
    clip: 1,
  } as const;
  return () => applyGradient(memory, change);
}

function blockOf(
  optimizer: Optimizer,
  rows: number,
  rowElements: number,
): { memory: ShardMemory; block: BlockActor } {
  const memory = ShardMemory.create({ bytesMax: 16 * BLOCK_BYTES });
  const shape = [rows, rowElements];
  const rate = optimizer === "none" ? {} : { learningRate: 1e-3 };
  const config = toConfig({ sparse: true, optimizer, ...rate });
  const place = { shape, start: 0, count: rows * rowElements, dtype: "float32", config } as const;
  const name = { parameter: "rows", index: 0, number: 1 };
  const header = { ...name, epoch: 1, version: 1, updates: 0, ...place };
  const block = new BlockActor(memory, header, slotPlan(place, { mode: "async" }), 0);
  block.values().fill(0);
  return { memory, block };
}

/** Chooses rows for a list in ascending order, which are not neighbours as a rule. */
function randomRows(rows: number, named: number): Uint32Array {
  const chosen = new Set<number>();
  let state = 1;
  while (chosen.size < named) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    chosen.add(Math.floor((state / 2 ** 32) * rows));
  }
  return Uint32Array.from(chosen).sort();
}

/** Returns the time of the fastest call: other programs may use the processor during the others. */
function bestMs(call: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  const until = performance.now() + MEASURE_MS;
  for (let startMs = performance.now(); startMs < until; ) {
    call();
    const endMs = performance.now();
    best = Math.min(best, endMs - startMs);
    startMs = endMs;
  }
  return best;
}

function main(): void {
  const results = benchRows();
  const names = new Set(results.map(({ name }) => name));
  console.log(`${"ns a row of".padEnd(28)}${ROW_ELEMENTS.map((n) => `${n}`.padStart(9)).join("")}`);
  for (const name of names) {
    const cells = results.filter((each) => each.name === name);
    const text = cells.map(({ nsPerRow }) => nsPerRow.toFixed(1).padStart(9)).join("");
    console.log(`${name.padEnd(28)}${text}`);
  }
}

if (import.meta.filename === process.argv[1]) main();
