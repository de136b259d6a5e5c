import {
  bytesOf,
  type Encoding,
  encodedBytes,
  sameArray,
  type TensorData,
} from "../../protocol/dtypes.ts";
import { decodeElements } from "../../protocol/encoding/encoding.ts";

/** Up to this many elements a loop is faster than a view and a copy of it. */
const LOOP_ELEMENTS_MAX = 64;

/** Memory in which received values are aligned; used within one call. */
let aligned = new ArrayBuffer(64 * 1024);

/** The values of several blocks as a message has them: each begins at a multiple of 8 bytes. */
export class ReceivedValues {
  readonly #bytes: Uint8Array;
  /** Views of the aligned copy, by the class of the array; made when they are asked for. */
  readonly #views = new Map<unknown, TensorData>();
  #isCopied = false;

  /** `bytes`: a view of the message. The values are valid until the next message is received. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Copies elements, which begin at byte `at`, to `count` consecutive places of an array from `start` on. */
  write(
    target: TensorData,
    start: number,
    count: number,
    encoding: Encoding | undefined,
    at: number,
  ): void {
    if (encoding !== undefined) {
      if (!(target instanceof Float32Array)) return;
      const encoded = this.#bytes.subarray(at, at + encodedBytes("float32", encoding, count));
      decodeElements(encoding, encoded, target.subarray(start, start + count));
      return;
    }
    const elementBytes = target.BYTES_PER_ELEMENT;
    if (count > LOOP_ELEMENTS_MAX) {
      bytesOf(target).set(
        this.#bytes.subarray(at, at + count * elementBytes),
        start * elementBytes,
      );
      return;
    }
    const source = this.#viewFor(target);
    const from = at / elementBytes;
    for (let i = 0; i < count; i++) target[start + i] = source[from + i] as never;
  }

  #viewFor(target: TensorData): TensorData {
    let view = this.#views.get(target.constructor);
    if (view !== undefined) return view;
    const { length } = this.#bytes;
    if (!this.#isCopied) {
      if (length > aligned.byteLength) aligned = new ArrayBuffer(length);
      new Uint8Array(aligned, 0, length).set(this.#bytes);
      this.#isCopied = true;
    }
    view = sameArray(target, aligned, Math.floor(length / target.BYTES_PER_ELEMENT));
    this.#views.set(target.constructor, view);
    return view;
  }
}
