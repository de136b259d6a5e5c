import type { Fields } from "../../../protocol/codec.ts";
import type { Guard, GuardAction, GuardSetting } from "../../../protocol/config/guard.ts";
import { GUARD_WINDOW_MAX } from "../../../protocol/config/guard.ts";
import { DTYPES } from "../../../protocol/dtypes.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { integerField, listField, textField } from "../../../protocol/fields.ts";
import { BLOCK_NUMBER_MAX } from "../../../protocol/limits.ts";
import type { Kernels } from "../../kernel/kernels.ts";
import type { BlockActor } from "../block-actor.ts";
import { NormHistory, type NormLimit } from "./norm-history.ts";

/** The history of all trainers: no trainer has an empty id. */
const COHORT = "";

/** How guards are to decide otherwise than parameters say, for a fold that asks what would have been. */
export interface GuardPolicy {
  /** Stands in place of the guards of all parameters. */
  readonly guard?: GuardSetting | undefined;
  /** Records whose gradients are applied as if no guard had objected; by their sequences. */
  readonly without?: ReadonlySet<number> | undefined;
}

/** A norm that was compared with the limit of a guard. */
export interface JudgedNorm {
  /** The block; of a contribution's tensor its first block. */
  readonly block: BlockActor;
  readonly guard: Guard;
  readonly norm: number;
  /** The history that it was compared with; undefined if there is none yet. */
  readonly history: NormHistory | undefined;
  /** Undefined while the history is too short. */
  readonly limit: NormLimit | undefined;
  /** What the guard does about it; undefined if the norm is not above the limit. */
  readonly action: GuardAction | undefined;
}

/** A history in a saved state: block, trainer or "" for all, window, and the norms as float64, oldest first. */
export type NormRow = readonly [number: number, trainer: string, window: number, norms: Uint8Array];

/**
 * Holds the norms by which guards judge: for each guarded block, or tensor of a contribution, those of each trainer or of
 * all. Part of the fold's state.
 */
export class GuardTable {
  policy: GuardPolicy = {};
  readonly #histories: Map<number, Map<string, NormHistory>> = new Map();
  #norms = 0;

  /** How many norms all histories have room for. */
  get norms(): number {
    return this.#norms;
  }

  /** Returns the guard of gradients and contributions of a block; undefined if it has none. */
  of({ config, dtype }: Pick<BlockActor, "config" | "dtype">): Guard | undefined {
    const guard = this.policy.guard ?? config.guard;
    if (guard === undefined || guard === "off") return undefined;
    return DTYPES[dtype].float && !config.static && !config.allowNonFinite ? guard : undefined;
  }

  /** Compares a norm with the limit of its guard. Changes nothing. `seq`: the record. */
  judge(
    kernels: Kernels,
    trainer: string,
    seq: number,
    { block, guard, norm }: Pick<JudgedNorm, "block" | "guard" | "norm">,
  ): JudgedNorm {
    const history = this.#histories.get(block.number)?.get(keyOf(guard, trainer));
    const limit = history?.limit(kernels, guard);
    const isAbove = limit !== undefined && norm > limit.limit && !this.policy.without?.has(seq);
    return { block, guard, norm, history, limit, action: isAbove ? guard.action : undefined };
  }

  /**
   * Adds the norms of a record to their histories, each up to its limit. No history is begun that would make all together
   * larger than `normsMax`.
   */
  note(trainer: string, judged: readonly JudgedNorm[], normsMax: number): void {
    for (const { block, guard, norm, history: known, limit } of judged) {
      const history =
        known?.window === guard.window
          ? known
          : this.#obtain(block.number, keyOf(guard, trainer), guard.window, normsMax);
      history?.add(Math.min(norm, limit?.limit ?? norm));
    }
  }

  /** Forgets the norms of a block. */
  forgetBlock(number: number): void {
    for (const { window } of this.#histories.get(number)?.values() ?? []) this.#norms -= window;
    this.#histories.delete(number);
  }

  /** Forgets the norms of trainers that do not pass. */
  keepTrainers(passes: (trainer: string) => boolean): void {
    for (const [number, histories] of this.#histories) {
      for (const [trainer, { window }] of histories) {
        if (trainer === COHORT || passes(trainer)) continue;
        histories.delete(trainer);
        this.#norms -= window;
      }
      if (histories.size === 0) this.#histories.delete(number);
    }
  }

  /** Returns the rows to save, by block and trainer. */
  save(): NormRow[] {
    return [...this.#histories]
      .sort(([a], [b]) => a - b)
      .flatMap(([number, histories]) =>
        [...histories]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([trainer, { window, norms }]): NormRow => {
            return [number, trainer, window, new Uint8Array(norms.buffer)];
          }),
      );
  }

  /**
   * Restores a row. `isKnown`: whether the shard has such a block, and remembers such a trainer.
   * @throws SNAPSHOT_DAMAGED if no records lead to it.
   */
  restore(
    [number, trainer, window, bytes]: NormRow,
    normsMax: number,
    isKnown: (number: number, trainer: string | undefined) => boolean,
  ): void {
    const norms = fromBytes(bytes);
    const isNew = this.#histories.get(number)?.has(trainer) !== true;
    const known = isKnown(number, trainer === COHORT ? undefined : trainer);
    const isValid = norms.length <= window && norms.every((norm) => norm > 0 && norm < Infinity);
    const history =
      isNew && known && isValid ? this.#obtain(number, trainer, window, normsMax) : undefined;
    if (history === undefined) {
      const of = trainer === COHORT ? "all trainers" : `trainer ${trainer}`;
      const text = `norms of block number ${number} by ${of}: expected up to ${window} of a block that is there`;
      throw new PserverError("SNAPSHOT_DAMAGED", text);
    }
    for (const norm of norms) history.add(norm);
  }

  #obtain(number: number, key: string, window: number, normsMax: number): NormHistory | undefined {
    let histories = this.#histories.get(number);
    const known = histories?.get(key);
    if (known?.window === window) return known;
    const norms = this.#norms - (known?.window ?? 0) + window;
    if (norms > normsMax) return undefined;
    const history = new NormHistory(window);
    for (const norm of known?.norms.slice(-window) ?? []) history.add(norm);
    if (histories === undefined) {
      histories = new Map();
      this.#histories.set(number, histories);
    }
    histories.set(key, history);
    this.#norms = norms;
    return history;
  }
}

/** Reads a saved row and checks each entry by itself. @throws BAD_MESSAGE */
export function parseNormRow(value: unknown): NormRow {
  const row: Fields = { ...listField({ norms: value }, "norms", 4) };
  const bytes = row["3"];
  if (!(bytes instanceof Uint8Array) || bytes.length % Float64Array.BYTES_PER_ELEMENT !== 0) {
    throw new PserverError("BAD_MESSAGE", "norms: expected bytes of float64");
  }
  return [
    integerField(row, "0", 1, BLOCK_NUMBER_MAX),
    textField(row, "1"),
    integerField(row, "2", 1, GUARD_WINDOW_MAX),
    bytes,
  ];
}

function keyOf({ history }: Guard, trainer: string): string {
  return history === "cohort" ? COHORT : trainer;
}

function fromBytes(bytes: Uint8Array): Float64Array {
  // A copy, aligned, even of a Buffer, whose own `slice` shares memory.
  return new Float64Array(new Uint8Array(bytes).buffer);
}
