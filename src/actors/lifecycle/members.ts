import { change } from "./compare-and-swap.ts";
import { MEMBERS_KEY } from "./keys.ts";
import {
  type Member,
  type Members,
  parseMembers,
  toJournalRecord,
  toMembersRecord,
  withoutMembers,
} from "./members-record.ts";
import type { Surroundings } from "./settings.ts";

/** The members as they stand. */
export async function readMembers(around: Surroundings): Promise<Members> {
  return parseMembers(await around.records.read(MEMBERS_KEY));
}

/**
 * Changes the members by compare-and-swap; `decide` may be called several times, and leaves them alone
 * by giving back what it was given.
 */
export async function changeMembers(
  around: Surroundings,
  decide: (members: Members) => Members,
): Promise<Members> {
  const { records, pause } = around;
  const { result } = await change({
    records,
    key: MEMBERS_KEY,
    pause,
    decide: (current) => {
      const before = parseMembers(current);
      const after = decide(before);
      return after === before
        ? { result: before }
        : { write: toMembersRecord(after), result: after };
    },
  });
  return result;
}

/**
 * Removes members that have ended in these sessions or, of the same trainers, in earlier ones; tells
 * the journals if there were any. In a job without steps there is nobody to remove.
 */
export async function removeMembers(around: Surroundings, gone: readonly Member[]): Promise<void> {
  if (around.job.synchronization.mode === "async" || gone.length === 0) return;
  let changed = false;
  const members = await changeMembers(around, (all) => {
    const left = withoutMembers(all, gone);
    changed = left !== all;
    return left;
  });
  if (changed) await around.announcer.announce(toJournalRecord(members));
}
