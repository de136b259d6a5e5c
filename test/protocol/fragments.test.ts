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
import { sampledMembers } from "../../src/protocol/sampling.ts";
import { codeOf } from "./refusal.ts";

interface Balanced {
  readonly about: string;
  readonly count: number;
  readonly tensors: readonly FragmentTensor[];
  readonly fragments: Readonly<Record<string, string>>;
}

interface Sampled {
  readonly about: string;
  readonly job: string;
  readonly fragment: string;
  readonly round: number;
  readonly members: readonly string[];
  readonly sample: number;
  readonly trainers: readonly string[];
}

const path = join(import.meta.dirname, "../vectors/fragments.json");
const vectors = JSON.parse(readFileSync(path, "utf8")) as {
  readonly balanced: Balanced[];
  readonly sampled: Sampled[];
};

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

describe("sampled members", () => {
  test.each(vectors.sampled)("are those of the vectors: $about", (sampled) => {
    const { members, sample, trainers } = sampled;
    expect([...sampledMembers(sampled, members, sample)].sort()).toEqual(trainers);
    expect([...sampledMembers(sampled, [...members].reverse(), sample)].sort()).toEqual(trainers);
  });

  test("are as many as were asked for, at least one, and over many rounds everybody as often", () => {
    const members = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const counts = new Map<string, number>();
    for (let round = 1; round <= 1000; round++) {
      const drawn = sampledMembers({ job: "j", fragment: "f", round }, members, 0.2);
      expect(drawn.size).toBe(2);
      for (const trainer of drawn) counts.set(trainer, (counts.get(trainer) ?? 0) + 1);
    }
    // 200 on average, with a standard deviation of 13.
    for (const count of counts.values()) expect(Math.abs(count - 200)).toBeLessThan(60);
    const named = { job: "j", fragment: "f", round: 1 };
    expect(sampledMembers(named, members, 0.01).size).toBe(1);
    expect(sampledMembers(named, members, 12)).toEqual(new Set(members));
    expect(sampledMembers(named, [], 3)).toEqual(new Set());
  });
});
