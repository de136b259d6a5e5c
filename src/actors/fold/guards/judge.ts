import type { GuardDecision } from "../../../protocol/config/guard.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { entryLabel } from "../../../protocol/messages/columns.ts";
import { quoteName } from "../../../protocol/names.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import type { FaultyEntry } from "../batch/run-change.ts";
import type { BlockActor } from "../block-actor.ts";
import type { GuardTable, JudgedNorm } from "./guard-table.ts";

/** What the norms of a record are judged by, and where the judgments are kept until the whole record is decided. */
export interface Judges {
  readonly memory: ShardMemory;
  readonly guards: GuardTable;
  readonly trainer: string;
  readonly seq: number;
  /** The norms of the record that were judged so far. */
  readonly judged: Judgment[];
}

/** What has a norm that is judged: a record of its own, an entry of a batch, or a tensor of a contribution. */
export type NormOwner = "record" | "tensor" | FaultyEntry;

/** A judged norm, and what has it. */
export interface Judgment extends JudgedNorm {
  readonly owner: NormOwner;
}

/** What guards have decided about a record, and the norm for which they did. */
export interface GuardVerdict extends GuardDecision {
  readonly parameter: string;
  /** The block or tensor. */
  readonly label: string;
  /** The median of the norms before. */
  readonly median: number;
  /** How many these are. */
  readonly norms: number;
  /** How many other norms of the record were above their limits. */
  readonly others: number;
  readonly entry?: FaultyEntry | undefined;
}

/** The rejection of a record by a guard, or its being set aside where that is told as a rejection. */
export class GuardRejection extends PserverError {
  readonly verdict: GuardVerdict;

  constructor(verdict: GuardVerdict) {
    super("GUARDED", rejectionText(verdict));
    this.verdict = verdict;
  }
}

/**
 * Judges the norm of a gradient of a block, or of a tensor of a contribution, whose first block it is; nothing happens
 * to a block without a guard.
 * @returns by what the elements are multiplied: 1 unless they are clipped.
 * @throws NON_FINITE if the norm is not finite, because elements are not or their squares are too large.
 */
export function judgeNorm(
  { memory, guards, trainer, seq, judged }: Judges,
  block: BlockActor,
  norm: number,
  owner: NormOwner,
): number {
  const guard = guards.of(block);
  if (guard === undefined) return 1;
  if (!Number.isFinite(norm)) {
    const text = `${labelOf(block, owner)}: expected a finite norm; received ${norm}`;
    throw new PserverError("NON_FINITE", text);
  }
  const own = { block, guard, norm };
  const { history, limit, action } = guards.judge(memory.kernels, trainer, seq, own);
  judged.push({ block, guard, norm, history, limit, action, owner });
  return action === "clip" ? (limit?.limit ?? norm) / norm : 1;
}

/** Names what has a norm, as messages do. */
function labelOf({ label, parameter }: BlockActor, owner: NormOwner): string {
  if (owner === "record") return label;
  if (owner === "tensor") return quoteName(parameter);
  return `${entryLabel(owner.run.first + owner.place)}, ${label}`;
}

/** From the mildest to the strictest. */
const STRICTNESS = ["clip", "set-aside", "reject"] as const;

/**
 * Returns what becomes of a record with these norms: the strictest action for any of them, and of those with this action
 * the norm that is furthest above its limit. Undefined if none is above.
 */
export function verdictOf(judged: readonly Judgment[]): GuardVerdict | undefined {
  let strictest: Judgment | undefined;
  let above = 0;
  for (const judgment of judged) {
    if (judgment.action === undefined) continue;
    above += 1;
    if (strictest === undefined || isStricter(judgment, strictest)) strictest = judgment;
  }
  if (strictest?.action === undefined || strictest.limit === undefined) return undefined;
  const { block, norm, action, owner } = strictest;
  return {
    ...{ action, norm, ...strictest.limit, others: above - 1 },
    ...{ parameter: block.parameter, label: labelOf(block, owner) },
    ...(typeof owner === "string" ? {} : { entry: owner }),
  };
}

function isStricter(a: Judgment, b: Judgment): boolean {
  const by = strictnessOf(a) - strictnessOf(b);
  return by === 0 ? excessOf(a) > excessOf(b) : by > 0;
}

function strictnessOf({ action }: Judgment): number {
  return action === undefined ? -1 : STRICTNESS.indexOf(action);
}

/** Returns how many times its limit a norm is. */
function excessOf({ norm, limit }: Judgment): number {
  return norm / (limit?.limit ?? norm);
}

function rejectionText({ action, label, norm, limit, median, norms }: GuardVerdict): string {
  const aside = action === "set-aside" ? "; it was set aside" : "";
  return (
    `${label}: expected a norm of at most ${limit}, as the median of the ${norms} before is ${median}; ` +
    `received ${norm}${aside}`
  );
}
