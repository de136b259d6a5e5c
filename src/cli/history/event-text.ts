import type { BlockChange, BlockOperation } from "../../actors/journal/block-change.ts";
import type { GuardMark, UpdateEvent } from "../../actors/journal/describe-record.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import type { NoteEntries } from "../../protocol/messages/records.ts";
import { formatBytes } from "../output/amounts.ts";
import { compactNumber } from "./numbers.ts";

/** Names shard and record, with the generation unless it is the first, and the entry of a batch: `3:1200.2`. */
export function placeText(event: UpdateEvent): string {
  const position = showPosition(event.shard, event);
  return event.entries === 1 ? position : `${position}.${event.entry}`;
}

/** Names the sender and the number of its record, as a point names them: `trainer-2/8:1042`. */
export function senderText({ trainer, session, n }: UpdateEvent): string {
  if (trainer === undefined) return "host";
  return session === undefined ? trainer : `${trainer}/${session}:${n}`;
}

/** Says what an update does: `init`, `set`, `mix 0.5 1`, `grad`, `grad lr 0.1`, `clock 12`, `note`. */
export function verbText({ verb, block, step }: UpdateEvent): string {
  if (block !== undefined) return operationText(block.operation);
  return verb === "clock" && step !== undefined ? `clock ${step}` : verb;
}

function operationText(operation: BlockOperation): string {
  switch (operation.op) {
    case "init":
    case "set":
      return operation.op;
    case "mix":
      return `mix ${compactNumber(operation.alpha)} ${compactNumber(operation.beta)}`;
    case "grad":
      return operation.lr === undefined ? "grad" : `grad lr ${compactNumber(operation.lr)}`;
  }
}

/** Names the block of an update, and which part of it: `w[0]`, `w[0] 12 rows`. */
export function blockText({ block }: UpdateEvent): string {
  if (block === undefined) return "";
  const { parameter, index, part } = block;
  const name = `${parameter}[${index}]`;
  if (part === undefined) return name;
  return `${name} ${part.rows} rows${part.inner === undefined ? "" : ` x ${part.inner}`}`;
}

/** Writes the percentage of zeros among the finite elements. */
export function zerosText(block: BlockChange | undefined): string {
  if (block?.statistics === undefined) return "-";
  if (block.statistics.zeros === 0) return "0%";
  return `${Number(((100 * block.statistics.zeros) / Math.max(1, block.elements)).toPrecision(3))}%`;
}

/** Writes the bytes of an update's elements. */
export function bytesText({ block, bytes }: UpdateEvent): string {
  const amount = block?.bytes ?? bytes;
  return amount === undefined ? "-" : formatBytes(amount);
}

/** Writes the entries of a note: `loss=0.3 step=12 mark="before"`. */
export function noteText(note: NoteEntries): string {
  return Object.entries(note)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === "number" ? compactNumber(value) : JSON.stringify(value)}`,
    )
    .join(" ");
}

/**
 * Says what became of an update, with the reason of a rejection, and why the update is not described if it is
 * not.
 */
export function outcomeText(event: UpdateEvent): string {
  const text = foldedText(event);
  return event.undescribed === undefined ? text : `${text}, not described: ${event.undescribed}`;
}

/** Says by which norms a guard has decided: `norm 812 above 3.1, median 1.2 of 32`. */
export function guardText({ norm, limit, median, norms, others }: GuardMark): string {
  const numbers = [norm, limit, median].map(compactNumber);
  const rest = others === 0 ? "" : `, and ${others} more norms of the record above their limits`;
  return `norm ${numbers[0]} above ${numbers[1]}, median ${numbers[2]} of ${norms}${rest}`;
}

function foldedText({ verb, outcome, block, guard }: UpdateEvent): string {
  if (verb === "left-out") return "left out";
  switch (outcome.kind) {
    case "set-aside":
      return guard === undefined ? "set aside" : `set aside: ${guardText(guard)}`;
    case "applied": {
      if (guard !== undefined) return `clipped: ${guardText(guard)}`;
      const nonFinite = block?.statistics?.nonFinite ?? 0;
      return nonFinite === 0 ? "applied" : `${nonFinite} not finite`;
    }
    case "rejected":
      return `${outcome.code}: ${outcome.message}`;
    case "repeated":
      return outcome.seq === 0 ? "repeated" : `repeats record ${outcome.seq}`;
    case "unreadable":
      return "unreadable";
  }
}
