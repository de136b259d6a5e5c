import { asMap, ensureError, flagField, integerField, listField, MEMBERS_MAX, PserverError, textField, } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { ENTRY_FORMAT, readEntry } from "../journal/kv-bucket.js";
import { BucketEntry, MEMBERS_KEY } from "./lock.js";
const NO_MEMBERS = { revision: 0, started: false, members: [] };
/**
 * Reads the members from their entry; none if there is no entry.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseMembers(stored) {
    if (stored === undefined)
        return NO_MEMBERS;
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
export function toMembersEntry(members) {
    return { format: ENTRY_FORMAT, ...members };
}
/** Returns the members as a record for the journals of all shards. */
export function toJournalRecord({ revision, started, members }) {
    return { verb: "members", revision, started, trainers: members.map(({ trainer }) => trainer) };
}
/**
 * Adds a member, under the next revision; returns `all` if it has entered in this session or a later one. `needed`:
 * how many members there must be at one time for steps to begin.
 * @throws TOO_MANY_TRAINERS
 */
export function withMember(all, member, needed) {
    const present = all.members.find(({ trainer }) => trainer === member.trainer);
    if (present !== undefined && present.session >= member.session)
        return all;
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
export function withoutMembers(all, gone) {
    // A later session of the same trainer has entered by itself, and stays.
    const isGone = (member) => gone.some(({ trainer, session }) => trainer === member.trainer && session >= member.session);
    const members = all.members.filter((member) => !isGone(member));
    if (members.length === all.members.length)
        return all;
    return { revision: all.revision + 1, started: all.started, members };
}
/** The entry of a job's members; a job without steps has none. */
export const membersEntry = new BucketEntry(MEMBERS_KEY, parseMembers, toMembersEntry);
/**
 * Removes members that have ended in these sessions, or in earlier sessions of the same trainers, and tells the
 * journals if there were any. Does nothing in a job without steps.
 */
export async function removeMembers(deps, gone) {
    if (deps.job.synchronization.mode === "async" || gone.length === 0)
        return;
    let changed = false;
    const { result: members } = await membersEntry.change(deps, (all) => {
        const left = withoutMembers(all, gone);
        changed = left !== all;
        return left;
    });
    if (changed)
        await deps.announcer.announce(toJournalRecord(members));
}
/**
 * Writes the members into the journals of all shards. When many come and go at one time, the journals get the newest
 * state, not each one. A journal that cannot be written delays nobody: the host that serves its shard writes it
 * later.
 */
export class MembersAnnouncer {
    #deps;
    #newest;
    #round = Promise.resolve();
    #next;
    constructor(deps) {
        this.#deps = deps;
    }
    /** Appends the members, or newer ones, to every journal; settles once each has been tried. */
    announce(record) {
        if (record.revision >= (this.#newest?.revision ?? 0))
            this.#newest = record;
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
    async announceTo(shards, record) {
        const { owners, onError } = this.#deps;
        await mapConcurrently(shards, async (shard) => {
            try {
                await owners.append(shard, record);
            }
            catch (error) {
                onError(ensureError(error));
            }
        });
    }
}
//# sourceMappingURL=members.js.map