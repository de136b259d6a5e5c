import { type Block, blockLabel } from "./block.ts";
import { damaged } from "./fold-state.ts";

/** Values and slots of restored blocks that have not been loaded yet. */
export class UnloadedSlots {
  readonly #slots: Map<Block, Set<number>> = new Map();

  /** Expects all slots of this block. */
  expect(block: Block): void {
    this.#slots.set(block, new Set(Array.from({ length: 1 + block.slots }, (_, slot) => slot)));
  }

  /**
   * Copies bytes into a slot of a block.
   * @throws SNAPSHOT_DAMAGED if there is no such slot, or it has another length.
   */
  load(block: Block, slot: number, bytes: Uint8Array): void {
    const label = blockLabel(block.parameter, block.index);
    if (slot > block.slots) {
      throw damaged(`${label}: expected slots up to ${block.slots}; received slot ${slot}`);
    }
    const target = block.slotBytes(slot);
    if (bytes.length !== target.length) {
      throw damaged(
        `${label} slot ${slot}: expected ${target.length} bytes; received ${bytes.length}`,
      );
    }
    target.set(bytes);
    const left = this.#slots.get(block);
    left?.delete(slot);
    if (left?.size === 0) this.#slots.delete(block);
  }

  /** @throws SNAPSHOT_DAMAGED if a slot has not been loaded. */
  check(): void {
    for (const [{ parameter, index }, slots] of this.#slots) {
      const label = blockLabel(parameter, index);
      throw damaged(
        `${label}: the bytes of slots ${[...slots].join(", ")} are not in the snapshot`,
      );
    }
  }
}
