import type { Fields } from "../../protocol/codec.ts";
import { flagField, integerField, listField, textField } from "../../protocol/fields.ts";
import { MEMBERS_MAX, TRAINERS_MAX } from "../../protocol/limits.ts";

/** The steps of a shard as a snapshot holds them. */
export interface StepState {
  /** Of the last members that were told; 0 before the first. */
  readonly revision: number;
  readonly started: boolean;
  /** The last step that has closed. */
  readonly closed: number;
  /** Each member with the last step it has ended, ascending by id. */
  readonly members: readonly (readonly [trainer: string, clock: number])[];
  /** Who has sent a gradient of the open step, ascending. */
  readonly participants: readonly string[];
}

/** @throws BAD_MESSAGE if the entries are no steps; whether a fold can have them is not asked. */
export function parseStepState(fields: Fields): StepState {
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
