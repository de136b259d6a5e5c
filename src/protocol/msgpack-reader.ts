import { PserverError } from "./errors.ts";

/** How deep lists and maps may lie in each other: far deeper than any message, far from any stack. */
export const NESTING_MAX = 16;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Longest text that is read byte by byte; a decoder costs more to call than that. */
const SHORT_TEXT_BYTES = 24;

/**
 * The value that the bytes hold as msgpack, byte strings as views of them. Only what the protocol
 * is made of is read: nil, booleans, numbers, text, bytes, lists, and maps with text keys. Strict
 * where readers of other languages may differ, so that all of them see the same: extensions, text
 * that is not UTF-8, repeated keys and bytes after the value are refused. What it costs is bounded
 * by the bytes that are there, whatever lengths they declare.
 *
 * @throws BAD_MESSAGE naming the place and what is wrong there.
 */
export function readMsgpack(bytes: Uint8Array): unknown {
  const reader = new Reader(bytes);
  const value = reader.value(0);
  if (reader.position !== bytes.length) {
    throw reader.refusal(`${bytes.length - reader.position} bytes after the end of the value`);
  }
  return value;
}

class Reader {
  position = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  refusal(what: string): PserverError {
    const { position } = this;
    return new PserverError("BAD_MESSAGE", `msgpack, byte ${position}: received ${what}`, {
      position,
    });
  }

  value(depth: number): unknown {
    const type = this.#view.getUint8(this.#take(1));
    if (type < 0x80) return type;
    if (type >= 0xe0) return type - 0x100;
    if (type < 0x90) return this.#map(type & 0x0f, depth);
    if (type < 0xa0) return this.#list(type & 0x0f, depth);
    if (type < 0xc0) return this.#text(type & 0x1f);
    switch (type) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.#binary(this.#length(type - 0xc4));
      case 0xca:
        return this.#view.getFloat32(this.#take(4));
      case 0xcb:
        return this.#view.getFloat64(this.#take(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#length(type - 0xcc);
      case 0xcf:
        return Number(this.#view.getBigUint64(this.#take(8)));
      case 0xd0:
        return this.#view.getInt8(this.#take(1));
      case 0xd1:
        return this.#view.getInt16(this.#take(2));
      case 0xd2:
        return this.#view.getInt32(this.#take(4));
      case 0xd3:
        return Number(this.#view.getBigInt64(this.#take(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#text(this.#length(type - 0xd9));
      case 0xdc:
      case 0xdd:
        return this.#list(this.#length(type - 0xdc + 1), depth);
      case 0xde:
      case 0xdf:
        return this.#map(this.#length(type - 0xde + 1), depth);
      default:
        this.position -= 1;
        throw this.refusal(`the type 0x${type.toString(16)}, which the protocol does not use`);
    }
  }

  /** The place of the next `count` bytes, which are passed. */
  #take(count: number): number {
    const start = this.position;
    if (count > this.#bytes.length - start) {
      throw this.refusal(`${this.#bytes.length - start} bytes where ${count} are announced`);
    }
    this.position = start + count;
    return start;
  }

  /** A whole number of 1, 2 or 4 bytes, for `size` 0, 1 and 2. */
  #length(size: number): number {
    if (size === 0) return this.#view.getUint8(this.#take(1));
    return size === 1 ? this.#view.getUint16(this.#take(2)) : this.#view.getUint32(this.#take(4));
  }

  #binary(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #text(length: number): string {
    const start = this.#take(length);
    const end = start + length;
    if (length <= SHORT_TEXT_BYTES) {
      let text = "";
      let at = start;
      for (; at < end; at++) {
        const byte = this.#bytes[at] as number;
        if (byte >= 0x80) break;
        text += String.fromCharCode(byte);
      }
      if (at === end) return text;
    }
    try {
      return decoder.decode(this.#bytes.subarray(start, end));
    } catch {
      this.position = start;
      throw this.refusal("text that is not UTF-8");
    }
  }

  #list(length: number, depth: number): unknown[] {
    this.#enter(length, depth);
    const list: unknown[] = [];
    for (let i = 0; i < length; i++) list.push(this.value(depth + 1));
    return list;
  }

  #map(length: number, depth: number): Record<string, unknown> {
    this.#enter(2 * length, depth);
    const map: Record<string, unknown> = {};
    for (let i = 0; i < length; i++) {
      const key = this.#key();
      if (Object.hasOwn(map, key)) throw this.refusal(`the key ${JSON.stringify(key)} again`);
      map[key] = this.value(depth + 1);
    }
    return map;
  }

  #key(): string {
    const type = this.#bytes[this.position] ?? 0;
    const isText = (type >= 0xa0 && type < 0xc0) || (type >= 0xd9 && type <= 0xdb);
    const key = isText ? this.value(0) : undefined;
    // Assigned to, `__proto__` would change what the map is.
    if (typeof key === "string" && key !== "__proto__") return key;
    throw this.refusal(isText ? "the key __proto__" : "a key that is no text");
  }

  /** Refuses a list or map that lies too deep, or has more values than there are bytes. */
  #enter(values: number, depth: number): void {
    if (depth >= NESTING_MAX) throw this.refusal(`a list or map ${depth + 1} deep`);
    if (values > this.#bytes.length - this.position) {
      throw this.refusal(
        `${values} values announced in ${this.#bytes.length - this.position} bytes`,
      );
    }
  }
}
