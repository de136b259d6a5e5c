import { crc32 } from "node:zlib";
import { CHECKSUM_WASM_BASE64 } from "./wasm.ts";

/** Exports of assembly/index.ts. */
interface ChecksumKernels {
  readonly REACH: { readonly value: number };
  readonly replace: (at: number, vectors: number) => void;
  readonly settle: (at: number) => void;
}

/** Length from which on it is faster to shorten the bytes first. */
export const LONG_BYTES = 16 * 1024;

/** Bytes shortened at a time; few enough to stay in a near cache. */
const CHUNK_BYTES = 32 * 1024;
const VECTOR_BYTES = 16;
const PAGE_BYTES = 65_536;

/** Memory through which long byte strings pass, a chunk at a time. */
class LongChecksum {
  readonly #kernels: ChecksumKernels;
  readonly #bytes: Buffer;
  readonly #reach: number;
  /** Offset of chunks; the end of the preceding chunk lies before it. */
  readonly #chunk: number;

  constructor() {
    const pages = 2;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const module = new WebAssembly.Module(Buffer.from(CHECKSUM_WASM_BASE64, "base64"));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    this.#kernels = exports as unknown as ChecksumKernels;
    this.#bytes = Buffer.from(memory.buffer);
    this.#reach = this.#kernels.REACH.value;
    // The module's constants have the first page.
    this.#chunk = PAGE_BYTES + this.#reach;
  }

  /** CRC-32 of at least {@link LONG_BYTES} bytes; `previous` continues an earlier one. */
  of(bytes: Uint8Array, previous: number): number {
    const memory = this.#bytes;
    const [start, reach] = [this.#chunk, this.#reach];
    const whole = bytes.length - (bytes.length % VECTOR_BYTES);
    memory.fill(0, start - reach, start);
    let at = 0;
    let n = this.#next(whole);
    memory.set(bytes.subarray(0, n), start);
    // zlib's initial register value, added to the first bytes instead.
    memory.writeUInt32LE((memory.readUInt32LE(start) ^ ~previous) >>> 0, start);
    while (at + n < whole) {
      this.#kernels.replace(start, n / VECTOR_BYTES);
      memory.copyWithin(start - reach, start + n - reach, start + n);
      at += n;
      n = this.#next(whole - at);
      memory.set(bytes.subarray(at, at + n), start);
    }
    const end = start + n;
    this.#kernels.replace(start, (n - reach) / VECTOR_BYTES);
    this.#kernels.settle(end - reach);
    const shortened = crc32(memory.subarray(end - reach, end), 0xffffffff);
    return whole === bytes.length ? shortened : crc32(bytes.subarray(whole), shortened);
  }

  /** Length of the next chunk. Leaves nothing, or at least the minimum of a last chunk. */
  #next(left: number): number {
    return left <= CHUNK_BYTES ? left : Math.min(CHUNK_BYTES, left - this.#reach);
  }
}

let ofThread: LongChecksum | undefined;

/**
 * CRC-32 (IEEE) of at least {@link LONG_BYTES} bytes; `previous` continues an earlier one. Two to
 * three times as fast as zlib in Node.js, which has no carry-less multiplication.
 */
export function longChecksum(bytes: Uint8Array, previous: number): number {
  ofThread ??= new LongChecksum();
  return ofThread.of(bytes, previous);
}
