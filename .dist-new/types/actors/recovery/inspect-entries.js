import { ensureError } from "../../protocol/index.js";
import { mapConcurrently } from "../concurrent.js";
import { parseSettings, SETTINGS_KEY, SETTINGS_LOST } from "../job/job-settings.js";
import { parseArchiverEntry } from "../journal/archivers.js";
import { parseWatermark } from "../journal/watermark.js";
import { parseLastNumber } from "../lifecycle/block-numbers.js";
import { contradictions } from "../lifecycle/compare-entries.js";
import { BLOCKS_KEY, JOB_KEY, MEMBERS_KEY, PARAMETER_KEYS, parameterOfKey, SESSION_KEY, SWEPT_KEY, TRAINER_KEYS, } from "../lifecycle/lock.js";
import { parseLifecycleEntry, UNINITIALIZED } from "../lifecycle/machine.js";
import { parseMembers } from "../lifecycle/members.js";
import { parseParameterEntry } from "../lifecycle/parameter.js";
import { parseNumber, parseTrainer } from "../lifecycle/sessions.js";
/** The entries of a job's bucket, without those that cannot be read. */
class SoundEntries {
    job = UNINITIALIZED;
    members = parseMembers(undefined);
    given = 0;
    swept = 0;
    /** The highest session in a trainer's entry. */
    trainersUpTo = 0;
    /** By name. */
    parameters = new Map();
    /** Takes an entry. @throws JOB_DAMAGED, BAD_VERSION if it is not one that this program writes. */
    take(key, stored) {
        if (key === JOB_KEY)
            this.job = parseLifecycleEntry(stored.value, key);
        else if (key === MEMBERS_KEY)
            this.members = parseMembers(stored);
        else if (key === SESSION_KEY)
            this.given = parseNumber(stored, key);
        else if (key === SWEPT_KEY)
            this.swept = parseNumber(stored, key);
        else if (key === BLOCKS_KEY)
            parseLastNumber(stored);
        else if (key === SETTINGS_KEY)
            parseSettings(stored.value);
        else if (key.startsWith(TRAINER_KEYS)) {
            const { session } = { session: 0, ...parseTrainer(stored, key) };
            this.trainersUpTo = Math.max(this.trainersUpTo, session);
        }
        else if (key.startsWith(PARAMETER_KEYS)) {
            const name = parameterOfKey(key);
            const parameter = parseParameterEntry(stored, name);
            if (parameter !== undefined)
                this.parameters.set(name, parameter);
        }
        else if (key.startsWith("archiver."))
            parseArchiverEntry(stored.value, key);
        else if (key.startsWith("head."))
            parseWatermark(stored.value, key);
    }
}
/**
 * Reads every entry of a job's bucket, and compares them with what the shards know whose owners answer; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like if the broker does not answer.
 */
export async function inspectEntries(bucket, shards, ask) {
    const known = new Map();
    // Asked first: what a shard knows was in an entry before.
    await mapConcurrently(shards, async (shard) => {
        const knowledge = await ask(shard);
        if (knowledge !== undefined)
            known.set(shard, knowledge);
    });
    const revision = await bucket.lastRevision();
    const { sound, problems } = await readSound(bucket);
    const { job, members, given, swept, parameters } = sound;
    const compared = {
        ...{ job, given, swept },
        membersRevision: members.revision,
        parameter: (name) => parameters.get(name),
    };
    for (const [shard, knowledge] of known) {
        for (const { key, problem } of contradictions(compared, shard, knowledge)) {
            if (!problems.has(key))
                problems.set(key, problem);
        }
    }
    if (given < sound.trainersUpTo && !problems.has(SESSION_KEY)) {
        const problem = `a trainer's entry has session ${sound.trainersUpTo}; found session ${given}`;
        problems.set(SESSION_KEY, problem);
    }
    const unasked = shards.filter((shard) => !known.has(shard));
    const listed = [...problems].map(([key, problem]) => ({ key, problem }));
    listed.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { problems: listed, unasked, known, sound, revision };
}
/** Reads the entries one by one; returns those that can be read, and what is wrong with the others by their keys. */
export async function readSound(bucket) {
    const sound = new SoundEntries();
    const problems = new Map();
    const keys = await bucket.keys("");
    if (!keys.includes(SETTINGS_KEY))
        problems.set(SETTINGS_KEY, SETTINGS_LOST);
    await mapConcurrently(keys, async (key) => {
        try {
            const stored = await bucket.read(key);
            if (stored !== undefined)
                sound.take(key, stored);
        }
        catch (error) {
            const { code, details, message } = ensureError(error);
            if (code !== "JOB_DAMAGED")
                throw error;
            problems.set(key, String(details["problem"] ?? message));
        }
    });
    return { sound, problems };
}
/** Asks the owner of a shard what it knows; undefined if none answers at once, or the shard has stopped. */
export async function askKnown(owners, shard) {
    try {
        return await owners.known(shard, 0);
    }
    catch {
        // Whatever its owner says: the shard cannot be asked now.
        return undefined;
    }
}
//# sourceMappingURL=inspect-entries.js.map