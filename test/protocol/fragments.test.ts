// Proves how tensors are divided among fragments: the vectors that clients of all languages share, and what holds for any
// tensors.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  balancedFragments,
  EMBEDDINGS_FRAGMENT,
  type FragmentTensor,
} from "../../src/protocol/fragments.ts";
import { codeOf } from "./refusal.ts";

interface Balanced {
  readonly about: string;
  readonly count: number;
  readonly tensors: readonly FragmentTensor[];
  readonly fragments: Readonly<Record<string, string>>;
}

const path = join(import.meta.dirname, "../vectors/fragments.json");
const vectors = JSON.parse(readFileSync(path, "utf8")) as { readonly balanced: Balanced[] };

const TENSORS = fc.uniqueArray(
  fc.record({
    name: fc.string({ minLength: 1 }),
    bytes: fc.nat(1_000_000),
    isEmbedding: fc.boolean(),
  }),
  { selector: ({ name }) => name, minLength: 1, maxLength: 40 },
);

describe("balanced fragments", () => {
  test.each(vectors.balanced)(
    "are those of the vectors: $about",
    ({ tensors, count, fragments }) => {
      const found = balancedFragments(tensors, count);
      expect(Object.fromEntries(found)).toEqual(fragments);
    },
  );

  test("are the same whatever the order of the tensors", () => {
    fc.assert(
      fc.property(TENSORS, fc.integer({ min: 1, max: 10 }), (tensors, count) => {
        const found = balancedFragments(tensors, count);
        const other = balancedFragments([...tensors].reverse(), count);
        expect(new Map([...other].sort())).toEqual(new Map([...found].sort()));
      }),
    );
  });

  test("differ in size by no more than their largest tensor, and have embeddings apart", () => {
    fc.assert(
      fc.property(TENSORS, fc.integer({ min: 1, max: 10 }), (tensors, count) => {
        const found = balancedFragments(tensors, count);
        const sizes = new Map<string, number>();
        let largest = 0;
        for (const { name, bytes, isEmbedding } of tensors) {
          const fragment = found.get(name) ?? "";
          expect(fragment === EMBEDDINGS_FRAGMENT).toBe(isEmbedding);
          if (isEmbedding) continue;
          largest = Math.max(largest, bytes);
          sizes.set(fragment, (sizes.get(fragment) ?? 0) + bytes);
        }
        if (sizes.size < count) return;
        expect(Math.max(...sizes.values()) - Math.min(...sizes.values())).toBeLessThanOrEqual(
          largest,
        );
      }),
    );
  });

  test("are refused for names that repeat, sizes that are none, and no fragments", () => {
    const tensor = { name: "w", bytes: 4 };
    expect(codeOf(() => balancedFragments([tensor, tensor], 2))).toBe("BAD_VALUE");
    expect(codeOf(() => balancedFragments([{ name: "w", bytes: -1 }], 2))).toBe("BAD_VALUE");
    expect(codeOf(() => balancedFragments([tensor], 0))).toBe("BAD_VALUE");
  });
});
