import type { Fields } from "./codec.ts";
import { integerField, listField, textField } from "./fields.ts";
import { TRAINERS_PER_MESSAGE_MAX } from "./limits.ts";
import { escapeId } from "./names.ts";

/** A trainer that a shard remembers, and the session that it remembers of it. */
export type TrainerSession = readonly [trainer: string, session: number];

/**
 * A list of trainers with their sessions, as it stands in messages.
 * @throws BAD_MESSAGE, BAD_NAME and the like, also for more than fit into one.
 */
export function parseTrainerSessions(list: unknown): TrainerSession[] {
  const rows = listField({ trainers: list }, "trainers", TRAINERS_PER_MESSAGE_MAX);
  return rows.map((value): TrainerSession => {
    const row: Fields = { ...listField({ row: value }, "row", 2) };
    const trainer = textField(row, "0");
    escapeId(trainer);
    return [trainer, integerField(row, "1", 1)];
  });
}

/** The entries of a request for the trainers after an id, or from the first one on after "". */
export function trainersRequest(after: string): Fields {
  return { after };
}

/** After which id an owner is asked for trainers; @throws BAD_MESSAGE. */
export function parseTrainersRequest(fields: Fields): string {
  return textField(fields, "after");
}

/** Some of the trainers that a shard remembers. */
export interface RememberedTrainers {
  /** A list that is not full is the last. */
  readonly trainers: readonly TrainerSession[];
  /** The highest session of which hosts have told the shard that it has been given. */
  readonly toldUpTo: number;
}

/** The entries of the reply. */
export function trainersReply(remembered: RememberedTrainers): Fields {
  return { ...remembered };
}

/** The trainers in a reply; @throws as {@link parseTrainerSessions}. */
export function parseTrainersReply(fields: Fields): RememberedTrainers {
  const toldUpTo = integerField(fields, "toldUpTo");
  return { trainers: parseTrainerSessions(fields["trainers"]), toldUpTo };
}
