// Numbers whose highest byte comes first, read without a DataView: each message would need another,
// which costs more than the few numbers in it.

/** Floating-point numbers pass through here. */
const scratch = new DataView(new ArrayBuffer(8));

/** The whole number in the four bytes from `at` on. */
export function readUint32(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16);
  return (high | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number)) >>> 0;
}

/** The number nearest to the whole one in the eight bytes from `at` on. */
export function readUint64(bytes: Uint8Array, at: number): number {
  return readUint32(bytes, at) * 2 ** 32 + readUint32(bytes, at + 4);
}

/** Like {@link readUint64}, in two's complement. */
export function readInt64(bytes: Uint8Array, at: number): number {
  return (readUint32(bytes, at) | 0) * 2 ** 32 + readUint32(bytes, at + 4);
}

/** The floating-point number in the four bytes from `at` on. */
export function readFloat32(bytes: Uint8Array, at: number): number {
  scratch.setUint32(0, readUint32(bytes, at));
  return scratch.getFloat32(0);
}

/** The floating-point number in the eight bytes from `at` on. */
export function readFloat64(bytes: Uint8Array, at: number): number {
  scratch.setUint32(0, readUint32(bytes, at));
  scratch.setUint32(4, readUint32(bytes, at + 4));
  return scratch.getFloat64(0);
}

/** Writes a whole number into the four bytes from `at` on. */
export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
