import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";

/**
 * Remembers the version of each block that this trainer read last, which its next gradient is made from.
 * A gradient names it, so that the history tells how old the values were, whether or not the
 * parameter's learning rate depends on it.
 */
export class SeenVersions {
  readonly #byParameter = new Map<string, { epoch: number; versions: Map<number, number> }>();

  /** A block was read. */
  note({ name, epoch }: ParameterInfo, block: number, version: number): void {
    let seen = this.#byParameter.get(name);
    if (seen?.epoch !== epoch) {
      seen = { epoch, versions: new Map() };
      this.#byParameter.set(name, seen);
    }
    seen.versions.set(block, version);
  }

  /** Forgets all versions, after a shard has undone some of them. */
  clear(): void {
    this.#byParameter.clear();
  }

  /** The version last read; undefined if there is none. */
  get({ name, epoch }: ParameterInfo, block: number): number | undefined {
    const seen = this.#byParameter.get(name);
    return seen?.epoch === epoch ? seen.versions.get(block) : undefined;
  }
}
