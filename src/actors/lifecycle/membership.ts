import {
  type Fields,
  PserverError,
  quoteName,
  type Synchronization,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { trainerKey } from "./keys.ts";
import { changeMembers, readMembers, removeMembers } from "./members.ts";
import { type Members, toJournalRecord, withMember } from "./members-record.ts";
import { isGone, requireLiveSession, requireSession } from "./sessions.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Makes a session a member of the job's steps, and tells the journals. A repeat changes nothing and
 * tells them again.
 * @throws UNSUPPORTED in a job whose trainers do not keep step.
 */
export async function enter(
  around: Surroundings,
  trainer: string,
  fields: Fields,
): Promise<Fields> {
  const { trainers } = requireSteps(around, trainer);
  const session = await requireLiveSession(around, trainer, fields);
  const member = { trainer, session };
  const members = await changeMembers(around, (all) => withMember(all, member, trainers));
  try {
    // One that has ended meanwhile may have been removed before it was written here.
    await requireSession(around, trainer, fields);
  } catch (error) {
    await removeMembers(around, [member]);
    throw error;
  }
  await around.announcer.announce(toJournalRecord(members));
  return { revision: members.revision };
}

/** Ends a session's membership; nobody waits for it from then on. As {@link enter} otherwise. */
export async function exit(around: Surroundings, trainer: string, fields: Fields): Promise<Fields> {
  requireSteps(around, trainer);
  const session = await requireSession(around, trainer, fields);
  await removeMembers(around, [{ trainer, session }]);
  return {};
}

/**
 * Removes the members whose lease is lost, and those of a few others, `from` one on, whose session has
 * ended otherwise; the members as they then stand.
 */
export async function expelLost(
  around: Surroundings,
  sample: { readonly from: number; readonly count: number },
): Promise<Members> {
  const all = await readMembers(around);
  const { length } = all.members;
  const suspects = all.members.filter(({ trainer }, i) => {
    const place = (i + length - (sample.from % length)) % length;
    return place < sample.count || around.view.isLost(trainerKey(trainer));
  });
  const gone = await mapConcurrently(suspects, (member) => isGone(around, member));
  const lost = suspects.filter((_member, i) => gone[i]);
  if (lost.length === 0) return all;
  await removeMembers(around, lost);
  return await readMembers(around);
}

function requireSteps(
  { job }: Surroundings,
  trainer: string,
): Exclude<Synchronization, { mode: "async" }> {
  const { synchronization } = job;
  if (synchronization.mode !== "async") return synchronization;
  throw new PserverError(
    "UNSUPPORTED",
    `trainer ${quoteName(trainer)} cannot enter or exit steps: job ${job.job} is async, its trainers ` +
      "do not keep step. That is fixed when a job is made, by the synchronization of its first host.",
    { trainer, expected: "sync or ssp", received: synchronization.mode },
  );
}
