/**
 * Follows a broker's log for a store that cannot be written until the broker is started again. Where
 * a full disk took half of a record that began a file, nats-server 2.12 writes nothing behind it, with
 * room or without, and says "no message cache" of every record; when it starts it drops the half one.
 */
export class StuckStore {
  #ranOut = false;

  /** Takes note of a line of the log; whether it says that records are refused for this. */
  isToldBy(line: string): boolean {
    if (!line.includes("failed to store a msg")) return false;
    if (line.includes("no space left")) this.#ranOut = true;
    return this.#ranOut && line.includes("no message cache");
  }
}
