import { isDeepStrictEqual } from "node:util";
import { PserverError } from "../../protocol/errors.ts";
import type { DeclareRecord, GrantedParameter } from "../../protocol/host-records.ts";
import { blockPlace } from "../../protocol/layout.ts";
import { quoteName } from "../../protocol/names.ts";
import type { InitRecord } from "../../protocol/records.ts";
import { sameShape } from "../../protocol/tensor.ts";
import { blockLabel } from "./block.ts";
import { type BlockName, refused } from "./check-record.ts";

/** A parameter that hosts have granted to a trainer. */
export interface Declared extends GrantedParameter {
  /** Who initializes it. */
  readonly trainer: string;
}

/** Which parameters hosts have told a shard of: what its blocks may be, and who may make them. */
export class DeclarationTable {
  readonly #shard: number;
  readonly #declared: Map<string, Declared> = new Map();

  /** `shard`: the number of the shard that it is a part of. */
  constructor(shard: number) {
    this.#shard = shard;
  }

  /** How many parameters are known. */
  get count(): number {
    return this.#declared.size;
  }

  /** All of them by name, in order of UTF-16 code units. */
  sorted(): Declared[] {
    return [...this.#declared.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Takes what is of a higher epoch than is known; of new names as many as there is room for. */
  take({ trainer, parameters }: DeclareRecord, declaredMax: number): void {
    for (const parameter of parameters) {
      const known = this.#declared.get(parameter.name);
      if (known !== undefined && parameter.epoch <= known.epoch) continue;
      if (known === undefined && this.#declared.size >= declaredMax) continue;
      this.#declared.set(parameter.name, { ...parameter, trainer });
    }
  }

  /** Forgets a parameter that was declared under an epoch of at most `epoch`. */
  drop(parameter: string, epoch: number): void {
    const known = this.#declared.get(parameter);
    if (known !== undefined && known.epoch <= epoch) this.#declared.delete(parameter);
  }

  /** Puts back what a state holds. @throws SNAPSHOT_DAMAGED if it is there already. */
  restore(declared: Declared): void {
    const { name } = declared;
    if (this.#declared.has(name)) {
      throw new PserverError("SNAPSHOT_DAMAGED", `${quoteName(name)}: expected one declaration`);
    }
    this.#declared.set(name, declared);
  }

  /**
   * Passes if an `init` makes its block as it was declared.
   * @throws UNKNOWN_PARAMETER, STALE_EPOCH, NOT_SELECTED, BAD_DTYPE, BAD_SHAPE, BAD_VALUE or BAD_CONFIG
   */
  check(trainer: string, { parameter, index }: BlockName, record: InitRecord): void {
    const label = blockLabel(parameter, index);
    const known = this.#declared.get(parameter);
    if (known === undefined) {
      throw refused("UNKNOWN_PARAMETER", `${label}: expected a parameter that has been declared`);
    }
    const { epoch, dtype, shape, config } = known;
    if (record.epoch !== epoch) {
      throw refused("STALE_EPOCH", `${label}: expected epoch ${epoch}; received ${record.epoch}`);
    }
    if (trainer !== known.trainer) {
      throw refused(
        "NOT_SELECTED",
        `${label}: expected trainer ${quoteName(known.trainer)}; received ${quoteName(trainer)}`,
      );
    }
    if (record.dtype !== dtype) {
      throw refused("BAD_DTYPE", `${label}: expected ${dtype}; received ${record.dtype}`);
    }
    if (!sameShape(record.shape, shape)) {
      throw refused("BAD_SHAPE", `${label}: expected [${shape}]; received [${record.shape}]`);
    }
    this.#checkPlace(known, index, record, label);
    if (!isDeepStrictEqual(record.config, config)) {
      throw refused("BAD_CONFIG", `${label}: expected the configuration that was declared`);
    }
  }

  #checkPlace({ layout }: Declared, index: number, record: InitRecord, label: string): void {
    const expected = blockPlace(layout, index);
    const { start, count } = record;
    if (expected.shard === this.#shard && expected.start === start && expected.count === count) {
      return;
    }
    throw refused(
      "BAD_VALUE",
      `${label}: expected ${expected.count} elements from ${expected.start} on, in shard ` +
        `${expected.shard}; received ${count} from ${start} on, in shard ${this.#shard}`,
    );
  }
}
