import {
  asMap,
  flagField,
  integerField,
  listField,
  MEMBERS_MAX,
  type MembersRecord,
  PserverError,
  textField,
} from "../../protocol/index.ts";
import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { MEMBERS_KEY } from "./keys.ts";
import { RECORD_FORMAT, readRecord } from "./lifecycle-record.ts";

/** A trainer that keeps step, and the session in which it has entered. */
export interface Member {
  readonly trainer: string;
  readonly session: number;
}

/** Who keeps step in a job, as its record holds it. */
export interface Members {
  /** Rises with every change; 0 before the first. */
  readonly revision: number;
  /** Whether as many as the job asks for have been there at one time. */
  readonly started: boolean;
  /** Ascending by id, each trainer once. */
  readonly members: readonly Member[];
}

const NOBODY: Members = { revision: 0, started: false, members: [] };

/**
 * The members in a record; nobody if there is none.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseMembers(stored: StoredRecord | undefined): Members {
  if (stored === undefined) return NOBODY;
  return readRecord(stored.value, MEMBERS_KEY, (fields) => ({
    revision: integerField(fields, "revision", 1),
    started: flagField(fields, "started"),
    members: listField(fields, "members", MEMBERS_MAX).map((value) => {
      const member = asMap(value, "member");
      return { trainer: textField(member, "trainer"), session: integerField(member, "session", 1) };
    }),
  }));
}

/** The members as their record, readable JSON. */
export function toMembersRecord(members: Members): unknown {
  return { format: RECORD_FORMAT, ...members };
}

/** The members as the journals of all shards are told. */
export function toJournalRecord({ revision, started, members }: Members): MembersRecord {
  return { verb: "members", revision, started, trainers: members.map(({ trainer }) => trainer) };
}

/**
 * With one more member, under the next revision; as they are if it is one in this session or a later
 * one. `needed`: how many there must be at one time for steps to begin.
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

/** Without those members, under the next revision; as they are if they are none. */
export function withoutMembers(all: Members, gone: readonly Member[]): Members {
  // A later session of the same trainer has entered by itself, and stays.
  const isGone = (member: Member): boolean =>
    gone.some(({ trainer, session }) => trainer === member.trainer && session >= member.session);
  const members = all.members.filter((member) => !isGone(member));
  if (members.length === all.members.length) return all;
  return { revision: all.revision + 1, started: all.started, members };
}
