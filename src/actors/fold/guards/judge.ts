import type { GuardDecision } from "../../../protocol/config/guard.ts";
import { PserverError } from "../../../protocol/errors.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import type { FaultyEntry } from "../batch/run-change.ts";
import type { BlockActor } from "../block-actor.ts";
import type { GuardTable, JudgedNorm } from "./guard-table.ts";

/** What a norm of a record is judged by, and where the judgment is kept until the whole record is decided. */
export interface Judges {
  readonly memory: ShardMemory;
  readonly guards: GuardTable;
  readonly trainer: string;
  readonly seq: number;
  /** The norms of the record that were judged so far. */
  readonly judged: Judgment[];
}

/** A judged norm, and the entry of a batch that has it. */
export interface Judgment extends JudgedNorm {
  readonly entry?: FaultyEntry | undefined;
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
  {
    norm,
    label,
    entry,
  }: { readonly norm: number; readonly label: string; readonly entry?: FaultyEntry },
): number {
  const guard = guards.of(block);
  if (guard === undefined) return 1;
  if (!Number.isFinite(norm)) {
    throw new PserverError("NON_FINITE", `${label}: expected a finite norm; received ${norm}`);
  }
  const { number, parameter } = block;
  const own = { number, parameter, label, guard, norm };
  const found = guards.judge(memory.kernels, trainer, seq, own);
  judged.push(entry === undefined ? found : { ...found, entry });
  return found.action === "clip" ? (found.limit?.limit ?? norm) / norm : 1;
}

/** From the mildest to the strictest. */
const STRICTNESS = ["clip", "set-aside", "reject"] as const;

/**
 * Returns what becomes of a record with these norms: the strictest action for any of them, and of those with this action
 * the norm that is furthest above its limit. Undefined if none is above.
 */
export function verdictOf(judged: readonly Judgment[]): GuardVerdict | undefined {
  let strictest: GuardVerdict | undefined;
  let above = 0;
  for (const { action, norm, limit: found, parameter, label, entry } of judged) {
    if (action === undefined || found === undefined) continue;
    above += 1;
    const { limit, median, norms } = found;
    const verdict = { action, norm, limit, parameter, label, median, norms, others: 0, entry };
    if (strictest === undefined || isStricter(verdict, strictest)) strictest = verdict;
  }
  return strictest && { ...strictest, others: above - 1 };
}

function isStricter(verdict: GuardVerdict, than: GuardVerdict): boolean {
  const by = STRICTNESS.indexOf(verdict.action) - STRICTNESS.indexOf(than.action);
  return by === 0 ? verdict.norm / verdict.limit > than.norm / than.limit : by > 0;
}

function rejectionText({ action, label, norm, limit, median, norms }: GuardVerdict): string {
  const aside = action === "set-aside" ? "; it was set aside" : "";
  return (
    `${label}: expected a norm of at most ${limit}, as the median of the ${norms} before is ${median}; ` +
    `received ${norm}${aside}`
  );
}
