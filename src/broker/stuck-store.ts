/**
 * Detects in a broker's log a store that cannot be written until the broker is restarted. If a full disk
 * cut off the first record of a file, nats-server 2.12 appends nothing to it, even with free space, and
 * logs "no message cache" for every record. At its next start it drops the incomplete record.
 */
export class StuckStore {
  #ranOut = false;

  /** Notes a line of the log; returns whether it reports a record refused for this reason. */
  isToldBy(line: string): boolean {
    if (!line.includes("failed to store a msg")) return false;
    if (line.includes("no space left")) this.#ranOut = true;
    return this.#ranOut && line.includes("no message cache");
  }
}
