// Proves that the changes of an element are those that its values show between the records of random
// trainings with several optimizers, in step or not, and that they add up to the difference of its values.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  blameElement,
  type ElementChange,
  locateElement,
  parseElement,
} from "../../../src/history/blame.ts";

import { viewElements } from "../../../src/history/compare-models.ts";
import { toNumbers } from "../../../src/protocol/encoding/half-floats.ts";
import { SHARD } from "../../actors/fold/journal-writer.ts";
import { refusalOf } from "../../protocol/refusal.ts";
import { failureOf } from "../failure.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { historyOf, type Training, trainings } from "../written-training.ts";

const { signal } = new AbortController();
const AT = 4;

/** The values of `w[4]` after each record. */
function valuesOf(history: FoldedHistory): (number | undefined)[] {
  return Array.from(history.own.following(), (shard) => {
    const block = shard.block("w", 0);
    return block && Number(toNumbers(block.dtype, viewElements(block.dtype, block.values()))[AT]);
  });
}

async function blame(history: FoldedHistory, since?: number) {
  const until = history.cut(history.own.lastSeq);
  const place = await locateElement(history, until, parseElement(`w[${AT}]`), signal);
  const changes: ElementChange[] = [];
  const found = await blameElement(history, place, {
    ...(since === undefined ? {} : { since: history.cut(since) }),
    until,
    signal,
    onChange: (change) => void changes.push(change),
  });
  return { found, changes };
}

describe("an element", () => {
  test("has the changes that its values show, and they add up", async () => {
    await fc.assert(
      fc.asyncProperty(trainings, fc.nat(), async (training, at) => {
        const history = historyOf(training);
        const values = valuesOf(history);
        const since = at % values.length;
        const { found, changes } = await blame(history, since);
        const shown = values.flatMap((value, seq) => {
          return seq > since && !Object.is(value, values[seq - 1])
            ? [[seq, values[seq - 1], value]]
            : [];
        });
        expect(changes.map(({ position, before, after }) => [position.seq, before, after])).toEqual(
          shown,
        );
        const first = values[since];
        expect(found.first).toBe(first);
        expect(found.last).toBe(values.at(-1));
        const totals = [...found.trainers.values(), ...found.steps.values()];
        const sum = totals.reduce((all, total) => all + Number(total.sum), 0);
        expect(sum).toBeCloseTo(Number(found.sum), 9);
        if (first !== undefined)
          expect(Number(found.sum)).toBeCloseTo(Number(values.at(-1)) - first, 9);
      }),
      { numRuns: 60 },
    );
  });

  test.each(["float32", "bfloat16"] as const)(
    "of a sync job of %s is moved by steps, with what each trainer's gradient added",
    async (dtype) => {
      const gradient = (trainer: "alice" | "bob", value: number) => {
        const values = Array<number>(6).fill(value);
        return { trainer, parameter: "w", kind: "gradient", values } as const;
      };
      const clock = (trainer: "alice" | "bob") => {
        return { trainer, parameter: "w", kind: "clock", values: [] } as const;
      };
      const acts = [gradient("alice", 2), gradient("bob", 4), clock("alice"), clock("bob")];
      const training: Training = {
        mode: { mode: "sync", trainers: 2 },
        optimizer: "sgd",
        dtype,
        acts,
      };
      const { found, changes } = await blame(historyOf(training));
      expect(changes.map(({ kind }) => kind)).toEqual(["init", "step"]);
      expect(changes[1]?.step).toEqual({
        step: 1,
        shares: [
          { trainer: "alice", gradient: 2 },
          { trainer: "bob", gradient: 4 },
        ],
      });
      // The mean of both gradients, at a rate of 0.1.
      expect(found.steps.get(1)?.sum).toBeCloseTo(-0.3, dtype === "float32" ? 6 : 2);
      expect(found.trainers.size).toBe(0);
    },
  );

  test("that a batch set, and did not push, is told so", async () => {
    const values = [1, 2, 3, 4, 5, 6];
    const of = (kind: "batch" | "set" | "set-batch" | "mix") => {
      return { trainer: "bob", parameter: "w", kind, values } as const;
    };
    const acts = [of("batch"), of("set-batch"), of("batch"), of("set"), of("mix")];
    const { changes } = await blame(historyOf({ mode: "async", optimizer: "sgd", acts }));
    // The last one mixes the values with the same values.
    expect(changes.map(({ kind }) => kind)).toEqual(["init", "push", "set", "push", "set"]);
  });
});

describe("the name of an element", () => {
  test.each([
    ["w[3,4]", { parameter: "w", indices: [3, 4] }],
    ["a[0][ 12 ]", { parameter: "a[0]", indices: [12] }],
    ["s", { parameter: "s", indices: [] }],
    ["s[]", { parameter: "s", indices: [] }],
  ])("%s", (text, name) => {
    expect(parseElement(text)).toEqual(name);
  });

  test.each(["w[1,]", "w[1,,2]"])("is not %s", (text) => {
    expect(refusalOf(() => parseElement(text)).code).toBe("BAD_VALUE");
  });

  test("leads to its block; an index that is outside, or a parameter that is not there, is refused", async () => {
    const history = historyOf({ mode: "async", optimizer: "sgd", acts: [] });
    const cut = history.cut(history.own.lastSeq);
    const locate = (text: string) => locateElement(history, cut, parseElement(text), signal);
    expect(await locate("b[5]")).toMatchObject({ shard: SHARD, index: 0, element: 5 });
    expect((await failureOf(locate("b[6]"))).code).toBe("BAD_INDEX");
    expect((await failureOf(locate("b"))).code).toBe("BAD_INDEX");
    expect((await failureOf(locate("q[0]"))).code).toBe("UNKNOWN_PARAMETER");
  });
});
