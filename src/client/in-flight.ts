import type { OpenRecord } from "./open-record.ts";

/** The records without a PubAck, by token, and their bytes, which stay within a bound. */
export class InFlight {
  readonly #bytesMax: number;
  readonly #records = new Map<string, OpenRecord>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of elements under way. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#records.size;
  }

  /** The records; a copy, so that they may be removed meanwhile. */
  list(): OpenRecord[] {
    return [...this.#records.values()];
  }

  get(token: string): OpenRecord | undefined {
    return this.#records.get(token);
  }

  /** Whether there is room for so many more; something larger than the bound goes alone. */
  fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }

  add(record: OpenRecord): void {
    this.#records.set(record.token, record);
    this.#bytes += record.piece.dataBytes;
  }

  /** The record is in flight no more: its message can go. */
  landed(record: OpenRecord): void {
    record.bytes = undefined;
    if (this.#records.delete(record.token)) this.#bytes -= record.piece.dataBytes;
  }

  clear(): void {
    this.#records.clear();
    this.#bytes = 0;
  }
}
