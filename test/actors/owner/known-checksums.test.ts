// Proves that a block's checksum is that of its present values, whatever was asked before.
import { expect, test } from "vitest";
import type { Block } from "../../../src/actors/fold/block-actor.ts";
import { KnownChecksums } from "../../../src/actors/owner/reads.ts";
import { checksum } from "../../../src/protocol/index.ts";

function block(version: number): { version: number } & Block {
  return { version } as { version: number } & Block;
}

const ONES = new Uint8Array(100).fill(1);
const TWOS = new Uint8Array(100).fill(2);

test("is computed for each version", () => {
  const known = new KnownChecksums();
  const changing = block(1);
  expect(known.of(changing, ONES)).toBe(checksum(ONES));
  changing.version = 2;
  expect(known.of(changing, TWOS)).toBe(checksum(TWOS));
});

test("is computed once for a version", () => {
  const known = new KnownChecksums();
  const still = block(1);
  known.of(still, ONES);
  expect(known.of(still, TWOS)).toBe(checksum(ONES));
});

test("is that of the block, not of another block with the same version", () => {
  const known = new KnownChecksums();
  known.of(block(1), ONES);
  expect(known.of(block(1), TWOS)).toBe(checksum(TWOS));
});
