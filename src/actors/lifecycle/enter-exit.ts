import {
  type Fields,
  membersNeeded,
  PserverError,
  parseMembershipRequest,
  quoteName,
  type Synchronization,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { trainerKey } from "./lock.ts";
import {
  type Members,
  membersEntry,
  removeMembers,
  toJournalRecord,
  withMember,
} from "./members.ts";
import {
  holdLease,
  isGone,
  requireSession,
  requireTrainer,
  type SessionDeps,
  trainerEntry,
} from "./sessions.ts";

/**
 * Makes a session a member of the job's steps, and tells the journals. A repeat changes nothing and tells them again.
 * @throws UNSUPPORTED in a job whose trainers do not keep step; NOT_MEMBER if the session has exited after it sent
 * this request.
 */
export async function enter(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields> {
  const needed = membersNeeded(requireSteps(deps, trainer));
  const session = await requireNoExit(deps, trainer, fields);
  await holdLease(deps, trainer, session);
  const member = { trainer, session };
  const { result: members } = await membersEntry.change(deps, (all) =>
    withMember(all, member, needed),
  );
  try {
    // If the session has ended or exited since, its removal may have come before this write.
    await requireNoExit(deps, trainer, fields);
  } catch (error) {
    await removeMembers(deps, [member]);
    throw error;
  }
  await deps.announcer.announce(toJournalRecord(members));
  return { revision: members.revision };
}

/**
 * Ends a session's membership: nobody waits for it any more. Requests to enter that it sent earlier are refused if
 * they come later.
 * @throws UNSUPPORTED as {@link enter}.
 */
export async function exit(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields> {
  requireSteps(deps, trainer);
  const session = await requireSession(deps, trainer, fields);
  const { exits } = parseMembershipRequest(fields);
  await trainerEntry(trainerKey(trainer)).change(deps, (known) =>
    known?.session === session && (known.exits ?? 0) < exits ? { ...known, exits } : known,
  );
  await removeMembers(deps, [{ trainer, session }]);
  return {};
}

/**
 * Removes the members whose lease is lost or whose session has ended, and returns those that are left. Looks up the
 * sessions of members whose leases are lost, and of `count` others from the `from`-th on.
 */
export async function expelLost(
  deps: SessionDeps,
  sample: { readonly from: number; readonly count: number },
): Promise<Members> {
  const all = await membersEntry.read(deps);
  const { length } = all.members;
  const suspects = all.members.filter(({ trainer }, i) => {
    const place = (i + length - (sample.from % length)) % length;
    return place < sample.count || deps.view.isLost(trainerKey(trainer));
  });
  const gone = await mapConcurrently(suspects, (member) => isGone(deps, member));
  const lost = suspects.filter((_member, i) => gone[i]);
  if (lost.length === 0) return all;
  await removeMembers(deps, lost);
  return await membersEntry.read(deps);
}

/**
 * Returns the session in a request to enter.
 * @throws as `requireTrainer`; NOT_MEMBER if the trainer has exited more often than it had when it sent the request.
 */
async function requireNoExit(deps: SessionDeps, trainer: string, fields: Fields): Promise<number> {
  const { exits } = parseMembershipRequest(fields);
  const known = await requireTrainer(deps, trainer, fields);
  if ((known.exits ?? 0) <= exits) return known.session;
  throw new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} has exited the steps since it asked to enter`,
    { trainer, expected: known.exits, received: exits },
  );
}

function requireSteps(
  { job }: SessionDeps,
  trainer: string,
): Exclude<Synchronization, { mode: "async" }> {
  const { synchronization } = job;
  if (synchronization.mode !== "async") return synchronization;
  throw new PserverError(
    "UNSUPPORTED",
    `trainer ${quoteName(trainer)} cannot enter or exit steps: job ${job.job} is async, its trainers ` +
      "do not keep step. The synchronization is fixed by the first host of a job.",
    { trainer, expected: "sync, ssp or diloco", received: synchronization.mode },
  );
}
