import { type MembersRecord, PserverError } from "../../protocol/index.ts";
import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { type KvEntry } from "../journal/kv-bucket.ts";
import { type BucketDeps, BucketEntry } from "./lock.ts";
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
/**
 * Reads the members from their entry; none if there is no entry.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export declare function parseMembers(stored: KvEntry | undefined): Members;
/** Returns the members as their entry, readable JSON. */
export declare function toMembersEntry(members: Members): unknown;
/** Returns the members as a record for the journals of all shards. */
export declare function toJournalRecord({ revision, started, members }: Members): MembersRecord;
/**
 * Adds a member, under the next revision; returns `all` if it has entered in this session or a later one. `needed`:
 * how many members there must be at one time for steps to begin.
 * @throws TOO_MANY_TRAINERS
 */
export declare function withMember(all: Members, member: Member, needed: number): Members;
/** Removes these members, under the next revision; returns `all` if none of them is a member. */
export declare function withoutMembers(all: Members, gone: readonly Member[]): Members;
/** The entry of a job's members; a job without steps has none. */
export declare const membersEntry: BucketEntry<Members, Members>;
/**
 * Removes members that have ended in these sessions, or in earlier sessions of the same trainers, and tells the
 * journals if there were any. Does nothing in a job without steps.
 */
export declare function removeMembers(deps: MembersDeps, gone: readonly Member[]): Promise<void>;
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
export declare class MembersAnnouncer {
    #private;
    constructor(deps: MembersAnnouncerDeps);
    /** Appends the members, or newer ones, to every journal; settles once each has been tried. */
    announce(record: MembersRecord): Promise<void>;
    /** Appends the members to these journals; settles once each has been tried. */
    announceTo(shards: readonly number[], record: MembersRecord): Promise<void>;
}
export {};
//# sourceMappingURL=members.d.ts.map