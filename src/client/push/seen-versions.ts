import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";

/**
 * The version of each block at this trainer's last read of it: what its next gradient is made from.
 * Kept only for parameters whose configuration divides the learning rate by the versions since.
 */
export class SeenVersions {
  readonly #byParameter = new Map<string, { epoch: number; versions: Map<number, number> }>();

  /** A block was read. */
  note({ name, epoch, config }: ParameterInfo, block: number, version: number): void {
    if (!config.stalenessScaling) return;
    let seen = this.#byParameter.get(name);
    if (seen?.epoch !== epoch) {
      seen = { epoch, versions: new Map() };
      this.#byParameter.set(name, seen);
    }
    seen.versions.set(block, version);
  }

  /** Forgets all: versions that were read have been undone, and are no versions of today's blocks. */
  clear(): void {
    this.#byParameter.clear();
  }

  /** The version last read; undefined if there is none, or it does not matter. */
  get({ name, epoch }: ParameterInfo, block: number): number | undefined {
    const seen = this.#byParameter.get(name);
    return seen?.epoch === epoch ? seen.versions.get(block) : undefined;
  }
}
