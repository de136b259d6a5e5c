import type { ConnectionSettings } from "../transport/connection.ts";
import { ArchiveSource } from "./archive/archive-source.ts";
import { JoinedSource } from "./archive/joined-source.ts";
import { BrokerHistory } from "./broker/broker-history.ts";
import { RecordedFile } from "./recording/recorded-file.ts";
import type { HistorySource } from "./source.ts";

/** Where the history of a job is kept: plain data, so that worker threads can open it, too. */
export type HistoryPlace =
  | {
      readonly kind: "broker";
      readonly connection: ConnectionSettings;
      readonly job: string;
      /** Directory of an archive that is read with it, as one history. */
      readonly archive?: string;
    }
  | { readonly kind: "archive"; readonly archive: string }
  | { readonly kind: "file"; readonly file: string };

/**
 * Opens the history of a job for reading; the caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if there is no such job; BAD_ARCHIVE,
 * BAD_VERSION, IO for an archive or a file.
 */
export async function openHistory(place: HistoryPlace): Promise<HistorySource> {
  switch (place.kind) {
    case "archive":
      return await ArchiveSource.open(place.archive);
    case "file":
      return await RecordedFile.open(place.file);
    case "broker": {
      const { connection, job, archive } = place;
      const archived = archive === undefined ? undefined : await ArchiveSource.open(archive);
      const live = await BrokerHistory.open(connection, job);
      try {
        return archived === undefined ? live : JoinedSource.join(archived, live);
      } catch (error) {
        await live.close();
        throw error;
      }
    }
  }
}
