import type { OpenRecord } from "./open-record.ts";

/** Between the two numbers of a token. */
const DASH = "-";

/**
 * The records without a PubAck, by token, and their bytes, which stay within a bound.
 *
 * They lie in slots, and a token begins with the number of its record's slot: a map of them, filled
 * and emptied with every burst of PubAcks, would be made anew each time.
 */
export class InFlight {
  readonly #bytesMax: number;
  readonly #slots: (OpenRecord | undefined)[] = [];
  readonly #free: number[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of elements under way. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  /** The records, in the order in which they were sent; a copy, so that they may be removed. */
  list(): OpenRecord[] {
    const records = this.#slots.filter((record) => record !== undefined);
    return records.sort((a, b) => a.sendNumber - b.sendNumber);
  }

  get(token: string): OpenRecord | undefined {
    const record = this.#slots[slotOf(token)];
    return record?.token === token ? record : undefined;
  }

  /** Whether there is room for so many more; something larger than the bound goes alone. */
  fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }

  /** The token of the record that is added next. `unique` differs from those of all others. */
  nextToken(unique: number): string {
    const slot = this.#free.at(-1) ?? this.#slots.length;
    return `${slot}${DASH}${unique.toString(36)}`;
  }

  add(record: OpenRecord): void {
    this.#free.pop();
    this.#slots[slotOf(record.token)] = record;
    this.#bytes += record.piece.dataBytes;
  }

  /** The record is in flight no more: its message can go. */
  landed(record: OpenRecord): void {
    record.bytes = undefined;
    if (this.get(record.token) !== record) return;
    const slot = slotOf(record.token);
    this.#slots[slot] = undefined;
    this.#free.push(slot);
    this.#bytes -= record.piece.dataBytes;
  }

  clear(): void {
    this.#slots.length = 0;
    this.#free.length = 0;
    this.#bytes = 0;
  }
}

function slotOf(token: string): number {
  return Number.parseInt(token, 10);
}
