import { isDeepStrictEqual } from "node:util";
import { ensureError } from "../../protocol/index.js";
import { decodeEntry, encodeEntry } from "../journal/kv-bucket.js";
import { ensureSnapshotStream } from "../journal/snapshot-store.js";
import { brokerCall, unlessMissing } from "../journal/streams.js";
import { forkOriginOf, SETTINGS_KEY, withForkOrigin, } from "./job-settings.js";
import { snapshotBytesFor } from "./storage-plan.js";
// A job's settings decide how everything else of it is read, and no shard knows them all. So the configuration of its
// snapshot stream has a copy, in a file of the broker's that is apart from the bucket's. Hosts decide by the entry and
// never by the copy; from it the entry is written again when it is damaged or lost.
/** Key of the copy in the stream's metadata. */
const COPY_KEY = "pserver-settings";
/**
 * Makes the stream of a job's snapshots, unless it exists, with a copy of the settings in its configuration; writes the
 * copy again if it is another one. `origin`: that of a fork, once it is complete.
 * @throws the errors of the broker.
 */
export async function ensureSnapshots(manager, subjects, settings, origin) {
    const copy = (of) => of === undefined ? settings : withForkOrigin(settings, of);
    const metadata = { [COPY_KEY]: encodeEntry(SETTINGS_KEY, copy(origin)) };
    const { job } = subjects;
    const { replicas } = settings;
    const bytesMax = snapshotBytesFor(settings, 0);
    const present = await ensureSnapshotStream(manager, subjects, { replicas, bytesMax, metadata });
    if (present === undefined)
        return;
    const found = settingsCopyIn(present);
    // A host does not know whether its job is a fork.
    const foundOrigin = found === undefined ? undefined : forkOriginOf(found);
    if (isDeepStrictEqual(found, copy(origin ?? foundOrigin)))
        return;
    await brokerCall(`writing the settings of job ${job} to its snapshot stream`, { job }, () => manager.streams.update(subjects.snapshotStream(), {
        metadata: { ...present.metadata, ...metadata },
    }));
}
/**
 * Returns the copy of a job's settings in the configuration of its snapshot stream, as the entry holds it; undefined if
 * there is none that can be read.
 */
export function settingsCopyIn({ metadata }) {
    const text = metadata?.[COPY_KEY];
    if (text === undefined)
        return undefined;
    try {
        return decodeEntry(SETTINGS_KEY, text, "");
    }
    catch (error) {
        if (ensureError(error).code !== "JOB_DAMAGED")
            throw error;
        return undefined;
    }
}
/**
 * Reads the copy of a job's settings; undefined if there is none that can be read.
 * @throws TIMEOUT, DENIED, … if the broker does not answer.
 */
export async function readSettingsCopy(manager, subjects) {
    const stream = subjects.snapshotStream();
    return await brokerCall(`looking at the stream ${stream}`, { stream }, async () => {
        const info = await unlessMissing(() => manager.streams.info(stream));
        return info && settingsCopyIn(info.config);
    });
}
//# sourceMappingURL=settings-copy.js.map