/** Smaller buffers are cheaper to allocate than to keep. */
const POOLED_BYTES_MIN = 16 * 1024;

/** Capacities between two powers of two, so that messages of nearly one size share buffers. */
const STEPS = 16;

/** Bytes kept by default. */
const KEPT_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Keeps buffers of large messages for reuse: a new megabyte costs more in page faults and garbage
 * collection than the work done with it. When the pool is full, buffers of the sizes used least recently
 * are dropped, so that a trainer which goes from small parameters to large ones reuses large buffers again.
 */
export class BufferPool {
  /** By capacity, in the order of last use. */
  readonly #free: Map<number, ArrayBuffer[]> = new Map();
  readonly #keptBytesMax: number;
  #keptBytes = 0;

  /** `keptBytesMax`: buffers given back beyond this are left to the garbage collector. */
  constructor(keptBytesMax: number = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** A buffer of this many bytes, with undefined contents. */
  take(bytes: number): Buffer {
    if (bytes < POOLED_BYTES_MIN) return Buffer.allocUnsafeSlow(bytes);
    const capacity = capacityFor(bytes);
    const kept = this.#freshest(capacity).pop();
    if (kept === undefined) return Buffer.allocUnsafeSlow(capacity).subarray(0, bytes);
    this.#keptBytes -= capacity;
    return Buffer.from(kept, 0, bytes);
  }

  /** Takes back a buffer from {@link take}; the caller may not use it any more. */
  giveBack(buffer: Uint8Array): void {
    const memory = buffer.buffer;
    const capacity = memory.byteLength;
    if (!(memory instanceof ArrayBuffer) || capacity < POOLED_BYTES_MIN) return;
    if (capacity !== capacityFor(capacity)) return;
    const free = this.#freshest(capacity);
    this.#evictOthers(capacity);
    if (this.#keptBytes + capacity > this.#keptBytesMax) return;
    this.#keptBytes += capacity;
    free.push(memory);
  }

  /** The buffers of a capacity; counts as a use of it. */
  #freshest(capacity: number): ArrayBuffer[] {
    const free = this.#free.get(capacity) ?? [];
    this.#free.delete(capacity);
    this.#free.set(capacity, free);
    return free;
  }

  /** Drops buffers of other capacities, those used least recently first. */
  #evictOthers(capacity: number): void {
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

/** The least capacity that holds this many bytes; less than a sixteenth larger. */
function capacityFor(bytes: number): number {
  const step = 2 ** Math.floor(Math.log2(bytes)) / STEPS;
  return Math.ceil(bytes / step) * step;
}
