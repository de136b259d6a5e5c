import { readFloat32, readFloat64, readInt64, readUint32, readUint64 } from "./big-endian.ts";
import { PserverError } from "./errors.ts";
import { TextTable } from "./text-table.ts";

/** Nesting limit of lists and maps: far more than any message needs, far less than a stack takes. */
export const NESTING_MAX = 16;

/**
 * Slots for texts, as a power of two: enough that the about forty words of the protocol and the reply
 * subjects of a hundred trainers seldom share one. They take at most 256 KiB per thread.
 */
const TEXT_SLOT_BITS = 11;

const texts = new TextTable(TEXT_SLOT_BITS);

/**
 * The value that the bytes hold as msgpack, byte strings as views of them. Only what the protocol
 * uses is read: nil, booleans, numbers, text, bytes, lists, and maps with text keys. Where readers
 * of other languages may differ it is strict, so that all of them read the same: extensions, text
 * that is not UTF-8, repeated keys and bytes after the value are refused. Time and memory are
 * bounded by the number of bytes, whatever lengths they declare.
 *
 * @throws BAD_MESSAGE naming the place and what is wrong there.
 */
export function readMsgpack(bytes: Uint8Array): unknown {
  const reader = new MsgpackReader(bytes);
  const value = reader.value(0);
  reader.end();
  return value;
}

/**
 * Reads msgpack value by value, as strictly as {@link readMsgpack}, for a map of which some entries are
 * kept apart. Every method advances past what it read, and throws BAD_MESSAGE for what is refused.
 */
export class MsgpackReader {
  /** Position of the next value. */
  position = 0;
  readonly #bytes: Uint8Array;
  readonly #valuesEnd: number;

  /** `valuesEnd`: the last position at which a value may begin. */
  constructor(bytes: Uint8Array, valuesEnd: number = bytes.length) {
    this.#bytes = bytes;
    this.#valuesEnd = valuesEnd;
  }

  /** The next value, nested in `depth` lists and maps. */
  value(depth: number): unknown {
    if (this.position > this.#valuesEnd) throw this.#refusal(`a value after ${this.#valuesEnd}`);
    const type = this.#bytes[this.#take(1)] as number;
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
        return readFloat32(this.#bytes, this.#take(4));
      case 0xcb:
        return readFloat64(this.#bytes, this.#take(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#length(type - 0xcc);
      case 0xcf:
        return readUint64(this.#bytes, this.#take(8));
      case 0xd0:
        return (this.#length(0) << 24) >> 24;
      case 0xd1:
        return (this.#length(1) << 16) >> 16;
      case 0xd2:
        return this.#length(2) | 0;
      case 0xd3:
        return readInt64(this.#bytes, this.#take(8));
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
        throw this.#refusal(`the type 0x${type.toString(16)}, which the protocol does not use`);
    }
  }

  /** The next key of a map. */
  key(): string {
    const type = this.#bytes[this.position] ?? 0;
    const isText = (type >= 0xa0 && type < 0xc0) || (type >= 0xd9 && type <= 0xdb);
    const key = isText ? this.value(0) : undefined;
    // Assigned to, `__proto__` would change what the map is.
    if (typeof key === "string" && key !== "__proto__") return key;
    throw this.#refusal(isText ? "the key __proto__" : "a key that is no text");
  }

  /** Reads the value of a key that was just read into a map. */
  entry(map: Record<string, unknown>, key: string, depth: number): void {
    if (Object.hasOwn(map, key)) throw this.repeated(key);
    map[key] = this.value(depth + 1);
  }

  /** The error for a repeated key, which was just read. */
  repeated(key: string): PserverError {
    return this.#refusal(`the key ${JSON.stringify(key)} again`);
  }

  /** Refuses a list or map that is nested too deeply, or declares more values than there are bytes. */
  enter(values: number, depth: number): void {
    if (depth >= NESTING_MAX) throw this.#refusal(`a list or map ${depth + 1} deep`);
    const left = this.#bytes.length - this.position;
    if (values > left) throw this.#refusal(`${values} values announced in ${left} bytes`);
  }

  /** Refuses bytes after the last value. */
  end(): void {
    const left = this.#bytes.length - this.position;
    if (left !== 0) throw this.#refusal(`${left} bytes after the end of the value`);
  }

  /** The position of the next `count` bytes; advances past them. */
  #take(count: number): number {
    const start = this.position;
    const left = this.#bytes.length - start;
    if (count > left) throw this.#refusal(`${left} bytes where ${count} are announced`);
    this.position = start + count;
    return start;
  }

  /** A whole number of 1, 2 or 4 bytes, for `size` 0, 1 and 2. */
  #length(size: number): number {
    const bytes = this.#bytes;
    const at = this.#take(1 << size);
    if (size === 0) return bytes[at] as number;
    return size === 1
      ? ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
      : readUint32(bytes, at);
  }

  #binary(length: number): Uint8Array {
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #text(length: number): string {
    const start = this.#take(length);
    const text = texts.read(this.#bytes, start, length);
    if (text !== undefined) return text;
    this.position = start;
    throw this.#refusal("text that is not UTF-8");
  }

  #list(length: number, depth: number): unknown[] {
    this.enter(length, depth);
    const list: unknown[] = [];
    for (let i = 0; i < length; i++) list.push(this.value(depth + 1));
    return list;
  }

  #map(length: number, depth: number): Record<string, unknown> {
    this.enter(2 * length, depth);
    const map: Record<string, unknown> = {};
    for (let i = 0; i < length; i++) this.entry(map, this.key(), depth);
    return map;
  }

  #refusal(what: string): PserverError {
    const { position } = this;
    return new PserverError("BAD_MESSAGE", `msgpack, byte ${position}: received ${what}`, {
      position,
    });
  }
}
