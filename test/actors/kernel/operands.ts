import type { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import {
  allocateData,
  bytesOf,
  type Dtype,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";

/** Bits that arithmetic trips over: zeros, denormals, extremes, infinities, quiet and signalling NaNs. */
const TRICKY_F32: readonly number[] = [
  0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000, 0xbf800000,
  0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff,
];
const TRICKY_F64: readonly bigint[] = [
  0x0000000000000000n,
  0x8000000000000000n,
  0x0000000000000001n,
  0x800fffffffffffffn,
  0x0010000000000000n,
  0x3ff0000000000000n,
  0x7fefffffffffffffn,
  0xffefffffffffffffn,
  0x7ff0000000000000n,
  0xfff0000000000000n,
  0x7ff8000000000000n,
  0x7ff0000000000001n,
  0xffffffffffffffffn,
  0x7ff0000100000000n,
  0xfff00000ffffffffn,
];
const TRICKY_I32: readonly number[] = [0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0x80000001];
const TRICKY_I64: readonly bigint[] = [
  0n,
  1n,
  0xffffffffffffffffn,
  0x7fffffffffffffffn,
  0x8000000000000000n,
  0x7ffffffffffffc00n,
  0x7ffffffffffffe00n,
  0x20000000000001n,
  0xfffffffffffff800n,
];

const TRICKY_SHORT = {
  bool: [0, 1],
  uint8: [0, 1, 127, 128, 255],
  int8: [0, 1, -1, 127, -128],
  float16: [0, 0x8000, 1, 0x83ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff],
  bfloat16: [0, 0x8000, 1, 0x807f, 0x80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff],
} as const;

/** A generator of 32-bit words from a seed, so that a failure comes again. */
export function words(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** `n` elements: every third tricky, the others any bits. */
export function trickyData(dtype: Dtype, n: number, next: () => number): TensorData {
  const data = allocateData(dtype, n);
  if (data.BYTES_PER_ELEMENT <= 2) {
    const tricky = TRICKY_SHORT[dtype as keyof typeof TRICKY_SHORT];
    for (let i = 0; i < n; i++) {
      const word = next();
      data[i] = word % 3 === 0 ? (tricky[next() % tricky.length] ?? 0) : word >>> 8;
      if (dtype === "bool") data[i] = (data[i] as number) & 1;
    }
  } else if (data.BYTES_PER_ELEMENT === 4) {
    const bits = new Uint32Array(data.buffer);
    const tricky = dtype === "float32" ? TRICKY_F32 : TRICKY_I32;
    for (let i = 0; i < n; i++) {
      const word = next();
      bits[i] = word % 3 === 0 ? (tricky[next() % tricky.length] ?? 0) : word;
    }
  } else {
    const bits = new BigUint64Array(data.buffer);
    const tricky = dtype === "float64" ? TRICKY_F64 : TRICKY_I64;
    for (let i = 0; i < n; i++) {
      const word = next();
      const any = (BigInt(word) << 32n) | BigInt(next());
      bits[i] = word % 3 === 0 ? (tricky[next() % tricky.length] ?? 0n) : any;
    }
  }
  return data;
}

const GUARD_BYTES = 64;
const GUARD = 0xa5;

/**
 * Puts the operands into `memory`, calls `kernel` with their pointers, and gives back the bytes of
 * the first one. Throws if a byte after any, or of any operand but the first, was changed.
 */
export function runInMemory(
  memory: ShardMemory,
  operands: readonly TensorData[],
  kernel: (pointers: readonly number[]) => void,
): Uint8Array {
  const [first = new Uint8Array(), ...others] = runAllInMemory(memory, operands, kernel);
  others.forEach((bytes, at) => {
    const before = operands[at + 1];
    if (before === undefined || !sameBytes(bytes, bytesOf(before))) {
      throw new Error(`operand ${at + 1} was changed`);
    }
  });
  return first;
}

/** As {@link runInMemory}, but any operand may be changed, and the bytes of all are given back. */
export function runAllInMemory(
  memory: ShardMemory,
  operands: readonly TensorData[],
  kernel: (pointers: readonly number[]) => void,
): Uint8Array[] {
  const sizes = operands.map((data) => data.byteLength + GUARD_BYTES);
  const pointers = sizes.map((size) => memory.allocate(size));
  const views = pointers.map((pointer, at) => memory.bytes(pointer, sizes[at] ?? 0));
  operands.forEach((data, at) => {
    views[at]?.fill(GUARD);
    views[at]?.set(bytesOf(data));
  });
  kernel(pointers);
  const results = operands.map((data, at) => {
    const view = views[at]?.slice() ?? new Uint8Array();
    const guarded = view.subarray(data.byteLength).every((byte) => byte === GUARD);
    if (!guarded) throw new Error(`operand ${at} was written to behind its end`);
    return view.slice(0, data.byteLength);
  });
  pointers.forEach((pointer, at) => {
    memory.free(pointer, sizes[at] ?? 0);
  });
  return results;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** Index of the first element that differs, or -1: a readable failure where a million may differ. */
export function firstDifference(actual: Uint8Array, expected: TensorData): number {
  const bytes = bytesOf(expected);
  if (sameBytes(actual, bytes)) return -1;
  const at = actual.findIndex((byte, i) => byte !== bytes[i]);
  return Math.floor((at < 0 ? actual.length : at) / expected.BYTES_PER_ELEMENT);
}
