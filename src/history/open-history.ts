import type { ConnectionSettings } from "../transport/connection.ts";
import { BrokerHistory } from "./broker/broker-history.ts";
import type { HistorySource } from "./source.ts";

/** Where the history of a job is kept: plain data, so that worker threads can open it, too. */
export type HistoryPlace = {
  readonly kind: "broker";
  readonly connection: ConnectionSettings;
  readonly job: string;
};

/**
 * Opens the history of a job for reading; the caller closes it.
 * @throws NO_BROKER, DENIED, NO_JETSTREAM, TIMEOUT; BAD_NAME if there is no such job.
 */
export async function openHistory(place: HistoryPlace): Promise<HistorySource> {
  return await BrokerHistory.open(place.connection, place.job);
}
