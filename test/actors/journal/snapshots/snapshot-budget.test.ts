import { describe, expect, test } from "vitest";
import { SnapshotBudget } from "../../../../src/actors/journal/snapshots/snapshot-budget.ts";
import { BufferPool } from "../../../../src/transport/buffers.ts";

// Proves that pieces are let in by their bytes and in order, that a piece larger than all room goes
// alone, and that copies are counted over all shards.

const MIB = 1024 * 1024;

/** Asks for room and notes when it is given. */
function ask(
  budget: SnapshotBudget,
  bytes: number,
  name: string,
  admitted: string[],
): Promise<void> {
  return budget.acquire(bytes).then(() => void admitted.push(name));
}

describe("a snapshot budget", () => {
  test("lets pieces in while they fit, the rest in order", async () => {
    const budget = new SnapshotBudget(new BufferPool());
    const admitted: string[] = [];
    const first = ask(budget, 3 * MIB, "first", admitted);
    const second = ask(budget, 3 * MIB, "second", admitted);
    const third = ask(budget, 1 * MIB, "third", admitted);
    await first;
    expect(admitted).toEqual(["first"]);
    budget.release(3 * MIB);
    await Promise.all([second, third]);
    expect(admitted).toEqual(["first", "second", "third"]);
  });

  test("lets a piece that is larger than the whole budget go alone", async () => {
    const budget = new SnapshotBudget(new BufferPool());
    const admitted: string[] = [];
    await ask(budget, 100 * MIB, "large", admitted);
    const small = ask(budget, 1, "small", admitted);
    await Promise.resolve();
    expect(admitted).toEqual(["large"]);
    budget.release(100 * MIB);
    await small;
  });

  test("is spent by the copies of all shards together", () => {
    const budget = new SnapshotBudget(new BufferPool());
    budget.copied(31 * MIB);
    expect(budget.isSpent).toBe(false);
    budget.copied(1 * MIB);
    expect(budget.isSpent).toBe(true);
    budget.copied(-1);
    expect(budget.isSpent).toBe(false);
  });
});
