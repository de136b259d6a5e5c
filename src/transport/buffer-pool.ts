/** Smaller buffers cost nothing worth saving. */
const POOLED_BYTES_MIN = 16 * 1024;

/** Capacities between two powers of two, so that messages of nearly one size share buffers. */
const STEPS = 16;

/** Bytes kept for later unless the pool's owner says otherwise. */
const KEPT_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Buffers for large messages that are used one after the other: a fresh megabyte costs more in page
 * faults and collections than what is done with it. Where there is no room for one more, buffers of
 * sizes that have not been asked for lately make it: a trainer that goes from small parameters to
 * large ones finds its large buffers again.
 */
export class BufferPool {
  /** By capacity; the one used last comes last. */
  readonly #free: Map<number, ArrayBuffer[]> = new Map();
  readonly #keptBytesMax: number;
  #keptBytes = 0;

  /** `keptBytesMax`: what is given back beyond is left to the collector. */
  constructor(keptBytesMax: number = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** A buffer of so many bytes, with whatever it held before. */
  take(bytes: number): Buffer {
    if (bytes < POOLED_BYTES_MIN) return Buffer.allocUnsafeSlow(bytes);
    const capacity = capacityFor(bytes);
    const kept = this.#freshest(capacity).pop();
    if (kept === undefined) return Buffer.allocUnsafeSlow(capacity).subarray(0, bytes);
    this.#keptBytes -= capacity;
    return Buffer.from(kept, 0, bytes);
  }

  /** Takes back what {@link take} gave, a small one too; nobody may use it any more. */
  giveBack(buffer: Uint8Array): void {
    const memory = buffer.buffer;
    const capacity = memory.byteLength;
    if (!(memory instanceof ArrayBuffer) || capacity < POOLED_BYTES_MIN) return;
    if (capacity !== capacityFor(capacity)) return;
    const free = this.#freshest(capacity);
    this.#makeRoom(capacity);
    if (this.#keptBytes + capacity > this.#keptBytesMax) return;
    this.#keptBytes += capacity;
    free.push(memory);
  }

  /** The buffers of a capacity, which counts as used. */
  #freshest(capacity: number): ArrayBuffer[] {
    const free = this.#free.get(capacity) ?? [];
    this.#free.delete(capacity);
    this.#free.set(capacity, free);
    return free;
  }

  /** Lets go of buffers of other capacities, the longest unused first. */
  #makeRoom(capacity: number): void {
    for (const [other, free] of this.#free) {
      if (other === capacity) return;
      while (free.length > 0 && this.#keptBytes + capacity > this.#keptBytesMax) {
        free.pop();
        this.#keptBytes -= other;
      }
      if (free.length > 0) return;
      this.#free.delete(other);
    }
  }
}

/** The least capacity that holds so many bytes, less than a sixteenth more. */
function capacityFor(bytes: number): number {
  const step = 2 ** Math.floor(Math.log2(bytes)) / STEPS;
  return Math.ceil(bytes / step) * step;
}
