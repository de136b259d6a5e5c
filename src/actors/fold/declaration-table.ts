import { isDeepStrictEqual } from "node:util";
import { PserverError } from "../../protocol/errors.ts";
import { blockPlace } from "../../protocol/layout.ts";
import type { DeclareRecord, GrantedParameter } from "../../protocol/messages/host-records.ts";
import type { InitRecord } from "../../protocol/messages/records.ts";
import type { DeclaredParameter } from "../../protocol/messages/shard-knowledge.ts";
import { quoteName } from "../../protocol/names.ts";
import { sameShape } from "../../protocol/tensor.ts";
import { type BlockName, blockLabel } from "./block-actor.ts";

/** A block that was declared. */
export interface DeclaredBlock {
  readonly declared: DeclaredParameter;
  readonly index: number;
}

/** Parameters that hosts have declared to a shard: what their blocks are and who may create them. */
export class DeclarationTable {
  readonly #shard: number;
  readonly #declared: Map<string, DeclaredParameter> = new Map();
  /** The names of the parameters of each fragment. */
  readonly #fragments: Map<string, Set<string>> = new Map();
  /** The parameters by the numbers of those of their blocks that lie on this shard. */
  readonly #numbers: Map<number, string> = new Map();

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** Number of declared parameters. */
  get count(): number {
    return this.#declared.size;
  }

  /** All entries by name, in order of UTF-16 code units. */
  sorted(): DeclaredParameter[] {
    return [...this.#declared.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The first `count` entries after this name, in the order of {@link sorted}. */
  after(name: string, count: number): DeclaredParameter[] {
    return this.sorted()
      .filter((declared) => declared.name > name)
      .slice(0, count);
  }

  /** Returns the block that was declared under a number of this shard; undefined for any other number. */
  ofNumber(number: number): DeclaredBlock | undefined {
    const name = this.#numbers.get(number);
    const declared = name === undefined ? undefined : this.#declared.get(name);
    return declared && { declared, index: number - declared.firstNumber };
  }

  /** Returns the declaration of a parameter; undefined if there is none. */
  get(parameter: string): DeclaredParameter | undefined {
    return this.#declared.get(parameter);
  }

  /** Lists the parameters of a fragment by name, in order of UTF-16 code units. */
  ofFragment(fragment: string): DeclaredParameter[] {
    const names = [...(this.#fragments.get(fragment) ?? [])].sort();
    return names.flatMap((name) => this.#declared.get(name) ?? []);
  }

  /** The names of all fragments that parameters belong to, in order of UTF-16 code units. */
  get fragments(): string[] {
    return [...this.#fragments.keys()].sort();
  }

  /**
   * Adds parameters, or replaces those declared under a lower epoch. Ignores new names beyond `declaredMax`, and a
   * parameter whose numbers another one has.
   * @returns the fragments of those that were added or replaced, each once.
   */
  take({ trainer, parameters }: DeclareRecord, declaredMax: number): Set<string> {
    const changed = new Set<string>();
    for (const parameter of parameters) {
      const existing = this.#declared.get(parameter.name);
      if (existing !== undefined && parameter.epoch <= existing.epoch) continue;
      if (existing === undefined && this.#declared.size >= declaredMax) continue;
      if (!this.#hasFreeNumbers(parameter)) continue;
      if (existing !== undefined) this.#forget(existing);
      this.#add({ ...parameter, trainer });
      const { fragment } = parameter.config;
      if (fragment !== undefined) changed.add(fragment);
    }
    return changed;
  }

  /** Notes that a parameter is initialized under this epoch; ignores one that is not declared under it. */
  initialized(parameter: string, epoch: number): void {
    const existing = this.#declared.get(parameter);
    if (existing?.epoch !== epoch) return;
    this.#declared.set(parameter, { ...existing, initialized: true });
  }

  /** Forgets what hosts have told of initializations. */
  forgetInitialized(): void {
    for (const [name, { initialized: _initialized, ...declared }] of this.#declared) {
      this.#declared.set(name, declared);
    }
  }

  /** Removes a parameter unless it was declared under a higher epoch than `epoch`. */
  drop(parameter: string, epoch: number): void {
    const existing = this.#declared.get(parameter);
    if (existing === undefined || existing.epoch > epoch) return;
    this.#forget(existing);
    this.#declared.delete(parameter);
  }

  /** Restores a saved parameter. @throws SNAPSHOT_DAMAGED if there is one of its name or numbers already. */
  restore(declared: DeclaredParameter): void {
    const { name } = declared;
    if (this.#declared.has(name) || !this.#hasFreeNumbers(declared)) {
      throw new PserverError("SNAPSHOT_DAMAGED", `${quoteName(name)}: expected one declaration`);
    }
    this.#add(declared);
  }

  #add(declared: DeclaredParameter): void {
    this.#declared.set(declared.name, declared);
    for (const number of this.#numbersOf(declared)) this.#numbers.set(number, declared.name);
    const { fragment } = declared.config;
    if (fragment === undefined) return;
    const names = this.#fragments.get(fragment) ?? new Set();
    this.#fragments.set(fragment, names.add(declared.name));
  }

  /** Forgets numbers and fragment of a parameter. */
  #forget(declared: DeclaredParameter): void {
    for (const number of this.#numbersOf(declared)) this.#numbers.delete(number);
    const { fragment } = declared.config;
    const names = fragment === undefined ? undefined : this.#fragments.get(fragment);
    names?.delete(declared.name);
    if (fragment !== undefined && names?.size === 0) this.#fragments.delete(fragment);
  }

  #hasFreeNumbers(declared: GrantedParameter): boolean {
    for (const number of this.#numbersOf(declared)) {
      const name = this.#numbers.get(number);
      if (name !== undefined && name !== declared.name) return false;
    }
    return true;
  }

  /** The numbers of those blocks of a parameter that lie on this shard. */
  *#numbersOf({ firstNumber, layout }: GrantedParameter): IterableIterator<number> {
    const { blocks, firstShard, shards, pinned } = layout;
    const first = (this.#shard - firstShard + shards) % shards;
    if (pinned === true && first !== 0) return;
    const stride = pinned === true ? 1 : shards;
    for (let index = first; index < blocks; index += stride) yield firstNumber + index;
  }

  /**
   * Passes if an `init` creates its block as declared; returns the declaration.
   * @throws UNKNOWN_PARAMETER, STALE_EPOCH, NOT_SELECTED, BAD_DTYPE, BAD_SHAPE, BAD_VALUE or BAD_CONFIG
   */
  check(trainer: string, { parameter, index }: BlockName, record: InitRecord): DeclaredParameter {
    const label = blockLabel(parameter, index);
    const declared = this.#declared.get(parameter);
    if (declared === undefined) {
      throw new PserverError(
        "UNKNOWN_PARAMETER",
        `${label}: expected a parameter that has been declared`,
      );
    }
    const { epoch, dtype, shape, config } = declared;
    if (record.epoch !== epoch) {
      throw new PserverError(
        "STALE_EPOCH",
        `${label}: expected epoch ${epoch}; received ${record.epoch}`,
      );
    }
    if (trainer !== declared.trainer) {
      throw new PserverError(
        "NOT_SELECTED",
        `${label}: expected trainer ${quoteName(declared.trainer)}; received ${quoteName(trainer)}`,
      );
    }
    if (record.dtype !== dtype) {
      throw new PserverError("BAD_DTYPE", `${label}: expected ${dtype}; received ${record.dtype}`);
    }
    if (!sameShape(record.shape, shape)) {
      throw new PserverError(
        "BAD_SHAPE",
        `${label}: expected [${shape}]; received [${record.shape}]`,
      );
    }
    this.#checkPlace(declared, index, record, label);
    if (!isDeepStrictEqual(record.config, config)) {
      throw new PserverError(
        "BAD_CONFIG",
        `${label}: expected the configuration that was declared`,
      );
    }
    return declared;
  }

  #checkPlace(
    { layout }: DeclaredParameter,
    index: number,
    record: InitRecord,
    label: string,
  ): void {
    const expected = blockPlace(layout, index);
    const { start, count } = record;
    if (expected.shard === this.#shard && expected.start === start && expected.count === count) {
      return;
    }
    throw new PserverError(
      "BAD_VALUE",
      `${label}: expected ${expected.count} elements from ${expected.start} on, in shard ` +
        `${expected.shard}; received ${count} from ${start} on, in shard ${this.#shard}`,
    );
  }
}
