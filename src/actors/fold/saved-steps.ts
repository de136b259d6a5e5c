import type { Fields } from "../../protocol/codec.ts";
import { flagField, integerField, listField, textField } from "../../protocol/fields.ts";
import { MEMBERS_MAX, TRAINERS_MAX } from "../../protocol/limits.ts";

/** The step table of a shard in the state of a snapshot. */
export interface SavedSteps {
  /** Revision of the members; 0 before the first `members` record. */
  readonly revision: number;
  readonly started: boolean;
  /** Last closed step. */
  readonly closed: number;
  /** Members with the last step that each has ended, ascending by id. */
  readonly members: readonly (readonly [trainer: string, clock: number])[];
  /** Senders of gradients of the open step, ascending. */
  readonly participants: readonly string[];
}

/**
 * Reads a saved step table and checks each field by itself; `StepTable.restore` checks the whole.
 * @throws BAD_MESSAGE if a field is missing or malformed.
 */
export function parseSavedSteps(fields: Fields): SavedSteps {
  return {
    revision: integerField(fields, "revision"),
    started: flagField(fields, "started"),
    closed: integerField(fields, "closed"),
    members: listField(fields, "members", MEMBERS_MAX).map((value) => {
      const row: Fields = { ...listField({ member: value }, "member", 2) };
      return [textField(row, "0"), integerField(row, "1")] as const;
    }),
    participants: listField(fields, "participants", TRAINERS_MAX).map((trainer) =>
      textField({ trainer }, "trainer"),
    ),
  };
}
