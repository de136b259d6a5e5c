import { once } from "node:events";
import type { Socket } from "node:net";
import { allocateData, bytesOf, DTYPES } from "../../protocol/dtypes.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";

import { ByteSource, type Timeouts } from "./byte-source.ts";
import {
  type ArrayHeader,
  FRAME,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  frameHeader,
  frameLength,
  JSON_BYTES_MAX,
  jsonFrame,
  parseArrayHeader,
  parseJsonFrame,
  type WireArray,
} from "./frames.ts";

/** Bytes given to the socket at a time, which it may hold if the peer does not read. */
const WRITE_BYTES = 1024 * 1024;

/** Reads and writes the frames of one connection. */
export class LegionWire {
  readonly #socket: Socket;
  readonly #source: ByteSource;
  readonly #timeouts: Timeouts;

  private constructor(socket: Socket, source: ByteSource, timeouts: Timeouts) {
    this.#socket = socket;
    this.#source = source;
    this.#timeouts = timeouts;
  }

  /** The wire of a socket, which stays the caller's to destroy. */
  static over(socket: Socket, timeouts: Timeouts): LegionWire {
    const source = new ByteSource(socket.iterator({ destroyOnReturn: false }), timeouts);
    return new LegionWire(socket, source, timeouts);
  }

  /** Waits for the next request; false if there is none. @throws TIMEOUT, IO. */
  hasMore(): Promise<boolean> {
    return this.#source.hasMore();
  }

  /** The object of a JSON frame. @throws BAD_MESSAGE, BAD_LENGTH, TIMEOUT. */
  async readJson(what: string): Promise<Readonly<Record<string, unknown>>> {
    const length = await this.#readHeader(FRAME.json, JSON_BYTES_MAX, what);
    const bytes = new Uint8Array(length);
    await this.#source.fill(bytes, what);
    return parseJsonFrame(bytes);
  }

  /**
   * Reads the description of an array, before memory is taken for its elements.
   * @throws BAD_DTYPE, BAD_SHAPE, TOO_LARGE, and as {@link LegionWire.readJson}.
   */
  async readArrayHeader(what: string, bytesMax: number): Promise<ArrayHeader> {
    return parseArrayHeader(await this.readJson(what), what, Math.min(bytesMax, FRAME_BYTES_MAX));
  }

  /** The elements after a header. @throws BAD_LENGTH unless the frame is as long as the header says. */
  async readElements(header: ArrayHeader, what: string): Promise<WireArray> {
    const { dtype, shape, elements, bytes: expected } = header;
    const received = await this.#readHeader(FRAME.numeric, FRAME_BYTES_MAX, what);
    if (received !== expected) {
      const elementsText = `${expected} bytes for ${dtype} of shape [${shape.join(", ")}]`;
      throw mismatch("BAD_LENGTH", what, elementsText, received);
    }
    const data = allocateData(dtype, elements);
    await this.#source.fill(bytesOf(data), what);
    return { dtype, shape, data };
  }

  /** Sends a JSON frame. @throws TIMEOUT if the peer takes nothing for a while, IO. */
  async sendJson(value: unknown): Promise<void> {
    await this.#write(jsonFrame(value));
  }

  /** Sends an array. @throws TOO_LARGE before anything is sent; as {@link LegionWire.sendJson}. */
  async sendArray({ dtype, shape, data }: WireArray): Promise<void> {
    const bytes = bytesOf(data);
    await this.sendJson({ shape, dtype });
    await this.#write(frameHeader(FRAME.numeric, bytes.byteLength));
    for (let at = 0; at < bytes.byteLength; at += WRITE_BYTES) {
      await this.#write(bytes.subarray(at, at + WRITE_BYTES));
    }
    // The array stays in the memory budget until the system has taken all of it.
    while (this.#socket.writableLength > 0) await this.#drained();
  }

  /** Ends sending, and discards what the peer sends until it ends, too. */
  async finish(): Promise<void> {
    this.#socket.end();
    await this.#source.discard();
  }

  async #readHeader(kind: number, bytesMax: number, what: string): Promise<number> {
    const header = new Uint8Array(FRAME_HEADER_BYTES);
    await this.#source.fill(header, what);
    return frameLength(header, kind, bytesMax);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#socket.destroyed || !this.#socket.writable) {
      throw new PserverError("IO", "reply: the peer has gone");
    }
    if (!this.#socket.write(bytes)) await this.#drained();
  }

  async #drained(): Promise<void> {
    const { stallMs } = this.#timeouts;
    try {
      await once(this.#socket, "drain", { signal: AbortSignal.timeout(stallMs) });
    } catch (cause) {
      const gone = this.#socket.destroyed;
      const message = gone ? "the peer has gone" : `the peer took nothing for ${stallMs} ms`;
      throw new PserverError(gone ? "IO" : "TIMEOUT", `reply: ${message}`, {}, { cause });
    }
  }
}

/** Bytes of an array in a reply. @throws TOO_LARGE if they exceed a frame. */
export function replyBytes(what: string, { dtype, shape }: Omit<WireArray, "data">): number {
  const bytes = shape.reduce((product, size) => product * size, DTYPES[dtype].bytes);
  if (bytes <= FRAME_BYTES_MAX) return bytes;
  const expected = `an array of at most ${FRAME_BYTES_MAX} bytes, the most of a frame`;
  throw mismatch("TOO_LARGE", what, expected, `one of ${bytes}`);
}
