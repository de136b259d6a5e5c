import type { Position } from "../../protocol/index.ts";

/** A value of an element; 64-bit integers are bigint. */
export type ElementValue = number | bigint;

/** A trainer's part of a step: what its gradients added to the sum of the element's gradients. */
export interface StepShare {
  readonly trainer: string;
  readonly gradient: ElementValue;
}

/** A record after which an element had another value. */
export interface ElementChange {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
  /** `step` if the record closed a step, whose gradients were applied; `drop` if the parameter was removed. */
  readonly kind: "init" | "push" | "set" | "step" | "drop";
  /** Sender of the record, with session and number; undefined for a host's. */
  readonly sender:
    | { readonly trainer: string; readonly session: number; readonly n: number }
    | undefined;
  /** The step that closed, and its gradients of this element. */
  readonly step: { readonly step: number; readonly shares: readonly StepShare[] } | undefined;
  /** Undefined if the element was not there. */
  readonly before: ElementValue | undefined;
  readonly after: ElementValue | undefined;
  /** After less before, where both are there. */
  readonly change: ElementValue | undefined;
}

/** Sum of the changes of one trainer, or of one step. */
export interface ChangeTotal {
  readonly changes: number;
  readonly sum: ElementValue;
}
