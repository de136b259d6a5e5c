// Proves what the merges come to that a minority cannot move: compared with references in float64 that are computed here, in
// any order of the contributions, with ties, of even and odd numbers, in every encoding, whole and in parts; that a round
// keeps its contributions within bounds, and is the same from a snapshot anywhere.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DilocoSettings, Merge } from "../../../../src/protocol/config/index.ts";
import type { Encoding } from "../../../../src/protocol/dtypes.ts";
import { limitedRules } from "../folded.ts";
import { both, DESCENT, FragmentJob } from "./fragment-job.ts";

const ROBUST = ["median", "trimmed-mean", "krum"] as const satisfies readonly Merge[];

/** What a trainer contributes: four elements of `u` and three of `w`, in one vector. */
interface Sent {
  readonly trainer: string;
  readonly vector: readonly number[];
}

/** Contributions of `count` trainers whose elements are drawn from a few values, so that there are ties. */
const sentBy = (count: number): fc.Arbitrary<Sent[]> =>
  fc
    .array(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 7, maxLength: 7 }), {
      minLength: count,
      maxLength: count,
    })
    .map((vectors) => vectors.map((vector, i) => ({ trainer: `t${i}`, vector })));

const COHORTS = fc.integer({ min: 2, max: 9 }).chain(sentBy);

type Settings = Partial<DilocoSettings>;

function jobOf(settings: Settings, sent: readonly Sent[], config?: object): FragmentJob {
  const job = new FragmentJob(settings, config);
  job.members(sent.map(({ trainer }) => trainer));
  for (const { trainer, vector } of sent) {
    job.contribute(trainer, vector.slice(0, 4), vector.slice(4));
  }
  return job;
}

/** The displacement that a round of these contributions has applied. */
function merged(settings: Settings, sent: readonly Sent[], config?: object): number[] {
  const job = jobOf(settings, sent, config);
  job.close(sent.length);
  expect(job.account(sent[0]?.trainer ?? "")).toEqual([1, 1, 0, 0]);
  return applied(job);
}

function applied(job: FragmentJob): number[] {
  return [...job.values("u"), ...job.values("w")].map((value) => 0 - value);
}

function column(sent: readonly Sent[], at: number): number[] {
  return sent.map(({ vector }) => vector[at] as number).sort((a, b) => a - b);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Merges in float64, by the definitions of their authors. */
const REFERENCES: Record<(typeof ROBUST)[number], (sent: readonly Sent[]) => number[]> = {
  median: (sent) =>
    Array.from({ length: 7 }, (_, at) => {
      const values = column(sent, at);
      const half = Math.floor(values.length / 2);
      return values.length % 2 === 1
        ? (values[half] as number)
        : mean(values.slice(half - 1, half + 1));
    }),
  "trimmed-mean": (sent) =>
    Array.from({ length: 7 }, (_, at) => {
      const cut = Math.floor(0.25 * sent.length);
      return mean(column(sent, at).slice(cut, sent.length - cut));
    }),
  krum: (sent) => {
    const inOrder = [...sent].sort((a, b) => (a.trainer < b.trainer ? -1 : 1));
    const faults = Math.max(0, Math.floor((sent.length - 3) / 2));
    const near = Math.max(1, sent.length - faults - 2);
    const scores = inOrder.map((own) => {
      const distances = inOrder
        .filter((other) => other !== own)
        .map(({ vector }) => {
          return vector.reduce((sum, x, at) => sum + (x - (own.vector[at] as number)) ** 2, 0);
        });
      return distances
        .sort((a, b) => a - b)
        .slice(0, near)
        .reduce((sum, each) => sum + each, 0);
    });
    const ranked = [...scores.keys()].sort((a, b) => {
      return (scores[a] as number) - (scores[b] as number) || a - b;
    });
    const kept = ranked.slice(0, Math.min(3, near));
    return Array.from({ length: 7 }, (_, at) => {
      return mean(kept.map((i) => inOrder[i]?.vector[at] as number));
    });
  },
};

const SETTINGS: Settings = { trim: 0.25, krumKeep: 3 };

describe.each(ROBUST)("%s", (merge) => {
  const settings = { ...SETTINGS, merge };

  test("is what its definition says", () => {
    fc.assert(
      fc.property(COHORTS, (sent) => {
        const expected = REFERENCES[merge](sent);
        for (const [at, value] of merged(settings, sent).entries()) {
          expect(value).toBeCloseTo(expected[at] as number, 5);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("has the same bytes in any order of the contributions", () => {
    const shuffled = COHORTS.chain((sent) =>
      fc.tuple(
        fc.constant(sent),
        fc.shuffledSubarray(sent, { minLength: sent.length, maxLength: sent.length }),
      ),
    );
    fc.assert(
      fc.property(
        shuffled,
        fc.array(fc.float({ noNaN: true, min: -9, max: 9 })),
        (orders, noise) => {
          const vectors = new Map(
            orders[0].map(({ trainer, vector }, i) => [
              trainer,
              vector.map(
                (x, at) => x + Math.fround(noise[(7 * i + at) % (noise.length || 1)] ?? 0),
              ),
            ]),
          );
          const [first, second] = orders.map((sent) =>
            merged(
              settings,
              sent.map(({ trainer }) => ({ trainer, vector: vectors.get(trainer) ?? [] })),
            ),
          );
          expect(second).toEqual(first);
        },
      ),
      { numRuns: 40 },
    );
  });

  test("of one contribution is that contribution, bit for bit", () => {
    const vector = [0.1, 1e-7, -12345.678, 3, 1e-30, -0.3, 7].map(Math.fround);
    const sent = [{ trainer: "alice", vector }];
    expect(merged(settings, sent)).toEqual(merged({ merge: "mean" }, sent));
    expect(merged(settings, sent)).toEqual(vector);
  });

  test("is not moved by a minority, whatever it sends and claims", () => {
    const honest = Array.from({ length: 6 }, (_, i) => ({
      trainer: `t${i}`,
      vector: Array.from({ length: 7 }, (_, at) => at + i / 10),
    }));
    const job = new FragmentJob({ ...settings, weights: "tokens", trim: 0.34 });
    const wrong = ["m0", "m1"];
    job.members([...honest.map(({ trainer }) => trainer), ...wrong]);
    for (const trainer of wrong) job.contribute(trainer, 1e30, -1e30, { tokens: 2 ** 40 });
    for (const { trainer, vector } of honest) {
      job.contribute(trainer, vector.slice(0, 4), vector.slice(4), { tokens: 1 });
    }
    job.close(8);
    for (const [at, value] of applied(job).entries()) {
      expect(value).toBeGreaterThanOrEqual(at - 1e-6);
      expect(value).toBeLessThanOrEqual(at + 0.5 + 1e-6);
    }
  });

  test.each([undefined, "bfloat16", "float16", "int8", "e3m0"] as const)(
    "decodes what came as %s, in one record or in parts",
    (encoding: Encoding | undefined) => {
      const [whole, parts] = [false, true].map((inParts) => {
        const job = new FragmentJob(settings);
        let id = 0;
        for (const [i, trainer] of ["alice", "bob", "carol"].entries()) {
          id += 1;
          // Powers of two, which every encoding has.
          const [u, w] = both(2 ** i, [-1, 2, 4 * i]).map((block) =>
            encoding === undefined ? block : { ...block, encoding },
          );
          if (u === undefined || w === undefined) throw new Error("no blocks");
          if (inParts) {
            job.send(trainer, [w], { id, part: 1, parts: 2 });
            job.send(trainer, [u], { id, part: 0, parts: 2 });
          } else job.send(trainer, [u, w], { id });
        }
        job.close(3);
        return applied(job);
      });
      expect(parts).toEqual(whole);
      if (merge === "median" && encoding !== "int8") expect(whole).toEqual([2, 2, 2, 2, -1, 2, 4]);
    },
  );

  test("compares whole parameters with the values that they began from", () => {
    const [displaced, whole] = (["displacement", "parameters"] as const).map((form) => {
      const job = new FragmentJob(settings);
      for (const [i, trainer] of ["alice", "bob", "carol"].entries()) {
        const value = form === "parameters" ? -(i * i) : i * i;
        job.contribute(trainer, value, value, { form });
      }
      job.close(3);
      return applied(job);
    });
    expect(whole).toEqual(displaced);
  });

  test("is the same from a snapshot after any contribution, and begins anew after the close", () => {
    const sent = Array.from({ length: 5 }, (_, i) => ({
      trainer: `t${i}`,
      vector: [i, i * i, -i, 3, 5 - i, 0, i / 3].map(Math.fround),
    }));
    const expected = merged(settings, sent);
    for (let cut = 1; cut <= sent.length; cut++) {
      const job = jobOf(settings, sent.slice(0, cut));
      expect(job.shard.fragments.keptBytes).toBeGreaterThan(0);
      const restored = job.restored();
      expect(restored.digest()).toBe(job.shard.digest());
      job.on(restored);
      job.members(sent.map(({ trainer }) => trainer));
      for (const { trainer, vector } of sent.slice(cut)) {
        job.contribute(trainer, vector.slice(0, 4), vector.slice(4));
      }
      job.close(sent.length);
      expect(applied(job)).toEqual(expected);
      expect(job.shard.fragments.keptBytes).toBe(0);
      job.contribute("t1", 1, 1, { base: 1 });
      job.close(1);
      expect(applied(job)).toEqual(expected.map((value) => Math.fround(value + 1)));
    }
  });
});

describe("a parameter", () => {
  test("has a merge of its own, and a share that is trimmed", () => {
    const sent = [0, 1, 2, 3, 100].map((x, i) => ({
      trainer: `t${i}`,
      vector: Array.from({ length: 7 }, () => x),
    }));
    const own = { ...DESCENT, merge: "trimmed-mean", trim: 0.4 };
    expect(merged({ merge: "mean" }, sent, own)).toEqual(Array.from({ length: 7 }, () => 2));
    const least = { ...DESCENT, merge: "trimmed-mean", trim: 0.1 };
    expect(merged({ merge: "mean", trim: 0.4 }, sent, least)[0]).toBeCloseTo(106 / 5, 4);
  });

  test("with a mean is not touched by the merge of another one", () => {
    const job = new FragmentJob({ merge: "median" });
    job.parameter("x", new Float32Array(1), { ...DESCENT, merge: "mean" });
    job.apply();
    for (const [i, trainer] of ["alice", "bob", "carol"].entries()) {
      const x = { parameter: "x", data: Float32Array.of(i === 2 ? 9 : 0) };
      job.send(trainer, [...both(i, i), x], { id: 2 });
    }
    job.close(3);
    expect([job.values("x"), job.values("w")]).toEqual([[-3], [-1, -1, -1]]);
  });
});

test("krum looks at the whole fragment: who is near in one tensor and far in another is not taken", () => {
  const sent = [
    { trainer: "a", vector: [1, 1, 1, 1, 50, 50, 50] },
    { trainer: "b", vector: [1.25, 1, 1, 1, 0, 0, 0] },
    { trainer: "c", vector: [1.5, 1, 1, 1, 0, 0, 0.25] },
    { trainer: "d", vector: [1.5, 1, 1, 1, 0, 0, -0.25] },
  ];
  expect(merged({ merge: "krum" }, sent).slice(0, 1)).toEqual([1.25]);
});

test("blocks that are larger than the rows are merged range by range", () => {
  const settings = { merge: "median" } as const;
  const count = 70_000;
  const job = new FragmentJob(settings);
  job.parameter("large", new Float32Array(count));
  job.apply();
  for (const [i, trainer] of ["alice", "bob", "carol"].entries()) {
    const data = Float32Array.from({ length: count }, (_, at) => ((at * 7 + i * 31) % 100) - 50);
    job.send(trainer, [...both(0, 0), { parameter: "large", data, encoding: "int8" }], { id: 2 });
  }
  job.close(3);
  // In int8 an element is off by less than half of its group's scale.
  for (const [at, value] of job.values("large").entries()) {
    const values = [0, 31, 62].map((shift) => ((at * 7 + shift) % 100) - 50).sort((a, b) => a - b);
    expect(Math.abs(-value - (values[1] as number))).toBeLessThan(0.25);
  }
});

describe("what a round keeps", () => {
  const rulesFor = (contributions: number) => {
    const job = new FragmentJob({ merge: "median" });
    job.contribute("alice", 1);
    const keptContributionBytesMax = Math.floor(contributions * job.shard.fragments.keptBytes);
    return limitedRules({ keptContributionBytesMax });
  };

  test.each([
    ["while others have room", 3, undefined, [1, 0, 0, 0]],
    ["and no more: what is refused names the bound, and is dropped", 2.9, "BUSY", [1, 0, 0, 1]],
  ] as const)("is kept %s", (_what, room, code, account) => {
    const knownRules = rulesFor(room);
    const job = new FragmentJob({ merge: "median" }, undefined, { knownRules });
    job.contribute("alice", 1);
    const before = job.shard.fragments.keptBytes;
    const outcome = job.contribute("bob", 1);
    expect(outcome.code).toBe(code);
    if (code !== undefined) {
      expect(outcome.message).toContain(`because the shard keeps ${before} bytes of others`);
      expect(job.shard.fragments.keptBytes).toBe(before);
    }
    expect(job.account("bob")).toEqual(account);
    // The next round has room again.
    job.close(1);
    expect(job.contribute("bob", 1, 1, { base: job.version }).code).toBeUndefined();
  });

  test("is nothing where all merges are means", () => {
    const job = new FragmentJob({ merge: "rda" });
    job.contribute("alice", 1);
    expect(job.shard.fragments.keptBytes).toBe(0);
  });

  test("is forgotten when the fragment's parameters change", () => {
    const job = new FragmentJob({ merge: "median" });
    job.contribute("alice", 1);
    job.parameter("x", new Float32Array(1));
    job.apply();
    expect(job.shard.fragments.keptBytes).toBe(0);
    expect(job.account("alice")).toEqual([1, 0, 0, 1]);
  });
});
