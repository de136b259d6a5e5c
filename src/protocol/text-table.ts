import { readUint32 } from "./big-endian.ts";

/**
 * Bytes of the longest text that a table keeps: more than most reply subjects have, the longest of
 * what comes in each message. With its length it fills a slot of 128 bytes.
 */
export const KEPT_TEXT_BYTES_MAX = 124;

const WORD_BYTES = 4;
const WORD_BITS = 8 * WORD_BYTES;
const SLOT_WORDS = 1 + KEPT_TEXT_BYTES_MAX / WORD_BYTES;
/** An odd multiplier with many bits set: it spreads a word to the highest bits, which select the slot. */
const SPREADER = 0x9e3779b1;

/** Longest text that is read byte by byte; calling a decoder costs more for these. */
const SHORT_TEXT_BYTES = 24;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads texts and caches short ones: the same bytes give the same string again, without decoding or
 * allocating. Messages consist of few texts, which recur in every one.
 *
 * Each text has one slot, shared with other texts, and replaces the text that is there. Memory is
 * therefore bounded, and a sender of many texts only costs the time to decode them.
 */
export class TextTable {
  readonly #texts: string[];
  /** Per slot the text's length in bytes and its bytes, four in a word. A free one has the text "". */
  readonly #slots: Int32Array;
  readonly #shift: number;
  /** The text being read, in the form of a slot. */
  readonly #wanted = new Int32Array(SLOT_WORDS);

  /** A table of 2^`slotBits` slots, at least two. */
  constructor(slotBits: number) {
    const slots = 2 ** slotBits;
    this.#texts = new Array<string>(slots).fill("");
    this.#slots = new Int32Array(slots * SLOT_WORDS);
    this.#shift = WORD_BITS - slotBits;
  }

  /** The text whose `length` bytes begin at `start`; undefined if they are not UTF-8. */
  read(bytes: Uint8Array, start: number, length: number): string | undefined {
    const end = start + length;
    if (length > KEPT_TEXT_BYTES_MAX) return decode(bytes, start, end);
    const wanted = this.#wanted;
    wanted[0] = length;
    let words = 1;
    let hash = length;
    let at = start;
    for (; at + WORD_BYTES <= end; at += WORD_BYTES) {
      const word = readUint32(bytes, at) | 0;
      wanted[words++] = word;
      hash = Math.imul(hash ^ word, SPREADER);
    }
    if (at < end) {
      let word = 0;
      for (; at < end; at++) word = (word << 8) | (bytes[at] as number);
      wanted[words++] = word;
      hash = Math.imul(hash ^ word, SPREADER);
    }
    const slot = hash >>> this.#shift;
    if (this.#holds(slot, words)) return this.#texts[slot];
    const text = decode(bytes, start, end);
    if (text !== undefined) this.#keep(slot, words, text);
    return text;
  }

  #holds(slot: number, words: number): boolean {
    const first = slot * SLOT_WORDS;
    for (let i = 0; i < words; i++) {
      if (this.#slots[first + i] !== this.#wanted[i]) return false;
    }
    return true;
  }

  #keep(slot: number, words: number, text: string): void {
    const first = slot * SLOT_WORDS;
    for (let i = 0; i < words; i++) this.#slots[first + i] = this.#wanted[i] as number;
    this.#texts[slot] = text;
  }
}

function decode(bytes: Uint8Array, start: number, end: number): string | undefined {
  if (end - start <= SHORT_TEXT_BYTES) {
    let text = "";
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte >= 0x80) break;
      text += String.fromCharCode(byte);
    }
    if (at === end) return text;
  }
  try {
    return decoder.decode(bytes.subarray(start, end));
  } catch {
    return undefined;
  }
}
