// The history of a job as a library: `openJournal`, and what it reads and rebuilds.
import { resolveSettings } from "../client/wire/broker-settings.js";
import { defined } from "../protocol/fields.js";
import { openJournalAt } from "./open-journal.js";
export { ERROR_CODES, PserverError } from "../protocol/errors.js";
export { formatPoint, parsePoint } from "./points.js";
/**
 * Opens the journals of a job for reading; needs no host, and changes nothing. The user needs the JetStream
 * API, like the user that hosts store with. The caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if the broker holds no such job; BAD_VALUE for
 * an invalid setting.
 * @example
 * const journal = await openJournal({ job: "mnist" });
 * const { model } = await journal.replayTo("10m ago");
 */
export async function openJournal(options) {
    const { job, archive, ...overrides } = options;
    const connection = resolveSettings(overrides);
    return await openJournalAt({ kind: "broker", connection, job, ...defined({ archive }) });
}
/**
 * Opens the archive in a directory, or a file of `pserver record`, of which every byte is checked; without a broker.
 * The caller closes it.
 * @throws BAD_ARCHIVE if there is none or it is damaged, BAD_VERSION, IO.
 */
export async function openArchivedJournal(archive) {
    return await openJournalAt({ kind: "archive", archive });
}
//# sourceMappingURL=index.js.map