import {
  asMap,
  ensureError,
  flagField,
  integerField,
  listField,
  MEMBERS_MAX,
  type MembersRecord,
  PserverError,
  textField,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { ENTRY_FORMAT, type KvEntry, readEntry } from "../journal/kv-bucket.ts";
import { type BucketDeps, BucketEntry, MEMBERS_KEY } from "./lock.ts";

/** A trainer that keeps step, and the session in which it has entered. */
export interface Member {
  readonly trainer: string;
  readonly session: number;
}

/** The trainers of a job that keep step, as their entry holds them. */
export interface Members {
  /** Rises with every change; 0 before the first. */
  readonly revision: number;
  /** Whether there were ever as many members at one time as the job asks for. */
  readonly started: boolean;
  /** Ascending by id, each trainer once. */
  readonly members: readonly Member[];
}

/** Dependencies of changes of the members. */
export interface MembersDeps extends BucketDeps {
  readonly job: JobSettings;
  readonly announcer: MembersAnnouncer;
}

const NO_MEMBERS: Members = { revision: 0, started: false, members: [] };

/**
 * Reads the members from their entry; none if there is no entry.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseMembers(stored: KvEntry | undefined): Members {
  if (stored === undefined) return NO_MEMBERS;
  return readEntry(stored.value, MEMBERS_KEY, (fields) => ({
    revision: integerField(fields, "revision", 1),
    started: flagField(fields, "started"),
    members: listField(fields, "members", MEMBERS_MAX).map((value) => {
      const member = asMap(value, "member");
      return { trainer: textField(member, "trainer"), session: integerField(member, "session", 1) };
    }),
  }));
}

/** Returns the members as their entry, readable JSON. */
export function toMembersEntry(members: Members): unknown {
  return { format: ENTRY_FORMAT, ...members };
}

/** Returns the members as a record for the journals of all shards. */
export function toJournalRecord({ revision, started, members }: Members): MembersRecord {
  return { verb: "members", revision, started, trainers: members.map(({ trainer }) => trainer) };
}

/**
 * Adds a member, under the next revision; returns `all` if it has entered in this session or a later one. `needed`:
 * how many members there must be at one time for steps to begin.
 * @throws TOO_MANY_TRAINERS
 */
export function withMember(all: Members, member: Member, needed: number): Members {
  const present = all.members.find(({ trainer }) => trainer === member.trainer);
  if (present !== undefined && present.session >= member.session) return all;
  const others = all.members.filter((other) => other !== present);
  if (others.length >= MEMBERS_MAX) {
    const text = `steps: expected at most ${MEMBERS_MAX} members; received one more`;
    throw new PserverError("TOO_MANY_TRAINERS", text, { expected: MEMBERS_MAX });
  }
  const members = [...others, member].sort((a, b) => (a.trainer < b.trainer ? -1 : 1));
  return {
    revision: all.revision + 1,
    started: all.started || members.length >= needed,
    members,
  };
}

/** Removes these members, under the next revision; returns `all` if none of them is a member. */
export function withoutMembers(all: Members, gone: readonly Member[]): Members {
  // A later session of the same trainer has entered by itself, and stays.
  const isGone = (member: Member): boolean =>
    gone.some(({ trainer, session }) => trainer === member.trainer && session >= member.session);
  const members = all.members.filter((member) => !isGone(member));
  if (members.length === all.members.length) return all;
  return { revision: all.revision + 1, started: all.started, members };
}

/** The entry of a job's members; a job without steps has none. */
export const membersEntry = new BucketEntry(MEMBERS_KEY, parseMembers, toMembersEntry);

/**
 * Removes members that have ended in these sessions, or in earlier sessions of the same trainers, and tells the
 * journals if there were any. Does nothing in a job without steps.
 */
export async function removeMembers(deps: MembersDeps, gone: readonly Member[]): Promise<void> {
  if (deps.job.synchronization.mode === "async" || gone.length === 0) return;
  let changed = false;
  const { result: members } = await membersEntry.change(deps, (all) => {
    const left = withoutMembers(all, gone);
    changed = left !== all;
    return left;
  });
  if (changed) await deps.announcer.announce(toJournalRecord(members));
}

/** Dependencies of {@link MembersAnnouncer}. */
interface MembersAnnouncerDeps {
  readonly owners: Pick<Owners, "append">;
  readonly shards: number;
  /** Told of each shard whose journal could not be written. */
  readonly onError: (error: PserverError) => void;
}

/**
 * Writes the members into the journals of all shards. When many come and go at one time, the journals get the newest
 * state, not each one. A journal that cannot be written delays nobody: the host that serves its shard writes it
 * later.
 */
export class MembersAnnouncer {
  readonly #deps: MembersAnnouncerDeps;
  #newest: MembersRecord | undefined;
  #round: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(deps: MembersAnnouncerDeps) {
    this.#deps = deps;
  }

  /** Appends the members, or newer ones, to every journal; settles once each has been tried. */
  announce(record: MembersRecord): Promise<void> {
    if (record.revision >= (this.#newest?.revision ?? 0)) this.#newest = record;
    // The announcement under way has written to some journals already, without this record.
    this.#next ??= this.#round.then(() => {
      this.#next = undefined;
      const all = Array.from({ length: this.#deps.shards }, (_, shard) => shard);
      this.#round = this.announceTo(all, this.#newest ?? record);
      return this.#round;
    });
    return this.#next;
  }

  /** Appends the members to these journals; settles once each has been tried. */
  async announceTo(shards: readonly number[], record: MembersRecord): Promise<void> {
    const { owners, onError } = this.#deps;
    await mapConcurrently(shards, async (shard) => {
      try {
        await owners.append(shard, record);
      } catch (error) {
        onError(ensureError(error));
      }
    });
  }
}
