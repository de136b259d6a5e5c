import type { PartIndex } from "../../protocol/parts.ts";
import type { InitRecord, PushOperation } from "../../protocol/records.ts";
import type { BlockName, StoredBlock } from "./block.ts";
import type { Payload } from "./payload.ts";
import type { SlotPlan } from "./slots.ts";
import type { Statistics } from "./statistics.ts";

/** An `init` that passed every check. */
export interface InitChange {
  readonly kind: "init";
  readonly name: BlockName;
  readonly record: InitRecord;
  readonly plan: SlotPlan;
  readonly data: Uint8Array;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A `set` that passed every check. */
export interface SetChange {
  readonly kind: "set";
  readonly block: StoredBlock;
  readonly data: Uint8Array;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A push with the elements it carries, which are as many as its block or part has. */
interface FittingPush {
  readonly block: StoredBlock;
  readonly payload: Payload;
  /** Elements of the block that the payload is for; undefined for all. */
  readonly part: PartIndex | undefined;
  /** L2 norm of the trainer's whole tensor; present for a gradient that is clipped by it. */
  readonly norm: number | undefined;
  /** Absent unless somebody observes the fold. */
  readonly statistics?: Statistics | undefined;
}

/** A push with `alpha` and `beta` that passed every check. */
export interface MixChange extends FittingPush {
  readonly kind: "mix";
  readonly operation: PushOperation & { readonly op: "mix" };
}

/** A gradient that passed every check. */
export interface GradientChange extends FittingPush {
  readonly kind: "gradient";
  readonly operation: PushOperation & { readonly op: "grad" };
  /** Divisor of the learning rate because of staleness; 1 or more. */
  readonly behind: number;
}

/** A record that passed every check, with the block it is for. */
export type Change = InitChange | SetChange | MixChange | GradientChange;
