/**
 * What the encodings with scales are to give, element by element, in float64 rounded to float32 where the format says
 * so. Levels of e3m0 are found by comparing all of them, not by the thresholds of the format.
 */
import { GROUP_ELEMENTS, type GroupedEncoding } from "../../../src/protocol/dtypes.ts";

/** A group as the format defines it. */
interface Group {
  readonly scale: number;
  readonly codes: readonly number[];
}

/** The whole number nearest to `x`, the even one of two. */
function roundEven(x: number): number {
  const below = Math.floor(x);
  const part = x - below;
  if (part !== 0.5) return Math.round(x);
  return below % 2 === 0 ? below : below + 1;
}

/** The float32 before a positive one. */
function before(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer);
  bits[0] = (bits[0] as number) - 1;
  return new Float32Array(bits.buffer)[0] as number;
}

function int8Scale(most: number): number {
  const scale = Math.fround(most / 127);
  return Math.fround(scale * 127) === Number.POSITIVE_INFINITY ? before(scale) : scale;
}

function int8Code(x: number, scale: number): number {
  return Math.max(-127, Math.min(127, roundEven(Math.fround(x / scale))));
}

/** The level whose power of two is nearest to a part of the scale, the larger of two; level 0 is 0. */
function level(part: number): number {
  let best = 0;
  for (let at = 1; at <= 7; at++) {
    const size = 2 ** (at - 7);
    const bestSize = best === 0 ? 0 : 2 ** (best - 7);
    if (Math.abs(size - part) <= Math.abs(bestSize - part)) best = at;
  }
  return best;
}

function e3m0Code(x: number, scale: number): number {
  const found = level(Math.fround(Math.abs(x) / scale));
  return found === 0 || x > 0 ? found : found + 8;
}

function groupOf(encoding: GroupedEncoding, elements: readonly number[]): Group {
  const none = elements.map(() => 0);
  if (elements.some(Number.isNaN)) return { scale: Number.NaN, codes: none };
  const most = Math.max(...elements.map(Math.abs));
  if (most === Number.POSITIVE_INFINITY) return { scale: most, codes: none };
  const scale = encoding === "int8" ? int8Scale(most) : most;
  if (scale === 0) return { scale, codes: none };
  const code = encoding === "int8" ? int8Code : e3m0Code;
  return { scale, codes: elements.map((x) => code(x, scale)) };
}

/** Returns the bytes of one entry. */
export function encodedGroups(encoding: GroupedEncoding, elements: Float32Array): Uint8Array {
  const groups: Group[] = [];
  for (let at = 0; at < elements.length; at += GROUP_ELEMENTS) {
    groups.push(groupOf(encoding, [...elements.subarray(at, at + GROUP_ELEMENTS)]));
  }
  const scales = new Uint8Array(Float32Array.from(groups, ({ scale }) => scale).buffer);
  const codes = groups.flatMap((group) => group.codes);
  if (encoding === "int8") return Uint8Array.from([...scales, ...codes.map((code) => code & 0xff)]);
  const pairs = Array.from(
    { length: Math.ceil(codes.length / 2) },
    (_, i) => (codes[2 * i] ?? 0) + 16 * (codes[2 * i + 1] ?? 0),
  );
  return Uint8Array.from([...scales, ...pairs]);
}

/** Returns the elements of one entry of so many elements, which must be one that is written. */
export function decodedGroups(
  encoding: GroupedEncoding,
  elements: number,
  bytes: Uint8Array,
): Float32Array {
  const groups = Math.ceil(elements / GROUP_ELEMENTS);
  const scales = new Float32Array(bytes.slice(0, 4 * groups).buffer);
  const codes = bytes.subarray(4 * groups);
  return Float32Array.from({ length: elements }, (_, i) => {
    const scale = scales[Math.floor(i / GROUP_ELEMENTS)] as number;
    if (!Number.isFinite(scale)) return scale;
    if (encoding === "int8") {
      const code = (((codes[i] as number) + 128) % 256) - 128;
      return Math.fround(code * scale);
    }
    const pair = codes[Math.floor(i / 2)] as number;
    const code = i % 2 === 0 ? pair % 16 : Math.floor(pair / 16);
    const size = code % 8 === 0 ? 0 : 2 ** ((code % 8) - 7);
    return Math.fround((code < 8 ? size : -size) * scale);
  });
}
