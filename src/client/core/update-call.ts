import { ERROR_CODES, reactionToRejection } from "../../protocol/errors.ts";
import type { Outcome } from "../../protocol/outcomes.ts";
import type { BlockUpdate, UpdateCall } from "./block-update.ts";
import type { Failure } from "./failure.ts";

/** Whether every update of the call has its fate. */
export function isOver(call: UpdateCall): boolean {
  return call.pending === 0;
}

/** Whether the call has failed; its error is the rejection, or made of what is unknown and unsent. */
export function hasFailed(call: UpdateCall): boolean {
  return call.rejection !== undefined || call.unknown > 0 || call.unsent > 0;
}

/** The update was applied, or stored if that is enough. */
export function applied(update: BlockUpdate): void {
  update.fate = "applied";
  update.call.applied += update.blocks;
  update.call.pending -= update.blocks;
}

/** The outcome of the update is known; the first rejection is the error of the call. */
export function settled(update: BlockUpdate, { code, message = "" }: Outcome): void {
  const { call } = update;
  const reaction = code === undefined ? undefined : reactionToRejection(code);
  if (code === undefined || (reaction === "count-present" && call.mode.countsPresent)) {
    applied(update);
  } else if (reaction === "count-late" && call.mode.countsLate) {
    update.fate = "late";
    call.late += update.blocks;
    call.pending -= update.blocks;
  } else {
    const text = message === "" ? ERROR_CODES[code].meaning : message;
    rejected(update, { code, message: text, details: {} });
  }
}

/** The update will never be applied. */
export function rejected(update: BlockUpdate, failure: Failure): void {
  const { call } = update;
  update.fate = "rejected";
  call.pending -= update.blocks;
  if (call.rejection !== undefined) return;
  call.rejected = update;
  call.rejection = failure;
}

/** The update was given up after it may have been stored. */
export function unknown(update: BlockUpdate): void {
  update.fate = "unknown";
  update.call.unknown += update.blocks;
  update.call.pending -= update.blocks;
}

/** The update was given up, and is stored nowhere. */
export function unsent(update: BlockUpdate, obstacle: Failure | undefined): void {
  const { call } = update;
  update.fate = "unsent";
  call.unsent += update.blocks;
  call.pending -= update.blocks;
  call.obstacle ??= obstacle;
}

/** Something ended the call or the session before every update had its fate; the first end counts. */
export function ended(call: UpdateCall, end: Failure): void {
  call.end ??= end;
}
