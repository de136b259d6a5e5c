// Proves what the entries of a job say after a rewind: what was ready at the cut is ready, what was not is to be
// initialized anew under a higher epoch, and hosts notice the change.
import { describe, expect, test } from "vitest";
import type { Lifecycle } from "../../../src/actors/lifecycle/machine.ts";
import { effectiveState, type Parameter } from "../../../src/actors/lifecycle/parameter.ts";
import {
  rewoundJob,
  rewoundParameter,
  wasInitialized,
} from "../../../src/history/continue/rewind-job.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";

const config = toConfig();
const layout = { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 1 };

function lifecycle(state: Lifecycle["state"], epoch = 1, over = {}): Lifecycle {
  return {
    state,
    context: { epoch, trainer: "a", session: 1, at: [], sealed: 0, revised: 0, ...over },
  };
}

function parameter(name: string, over: Partial<Parameter> = {}): Parameter {
  const declaration = { name, dtype: "float32", shape: [1], config } as const;
  const rest = { jobEpoch: 0, lifecycle: lifecycle("ready"), revision: 5 };
  return { declaration, layout, firstNumber: 1, blocksMax: 1, ...rest, ...over };
}

/** A job that was finished when its journal had 10 records. */
const READY = lifecycle("ready", 2, { at: [{ shard: 0, generation: 1, seq: 10 }], sealed: 40 });
/** Declared in the job's initialization. */
const OF_JOB = { jobEpoch: 2, lifecycle: lifecycle("initializing") };

/** The generation with which shard 0 goes back. */
const GENERATIONS = [2];

/** The entries after a rewind to a record of shard 0. */
function entriesAfter(
  job: Lifecycle,
  known: readonly Parameter[],
  found: readonly Parameter[],
  seq: number,
): { job: Lifecycle; parameters: (Parameter | undefined)[] } {
  const cut = [{ generation: 1, seq }];
  const initialized = wasInitialized({ job, parameters: known }, found, cut);
  const to = { initialized, generations: GENERATIONS };
  const named = (all: readonly Parameter[], name: string): Parameter | undefined =>
    all.find(({ declaration }) => declaration.name === name);
  const names = new Set([...known, ...found].map(({ declaration }) => declaration.name));
  const parameters = [...names].map((name) =>
    rewoundParameter(named(known, name), named(found, name), to),
  );
  return { job: rewoundJob(job, to), parameters };
}

/** Effective states by name, and the job's, at a cut. */
function statesAfter(...of: Parameters<typeof entriesAfter>): Record<string, string> {
  const entries = entriesAfter(...of);
  const states = entries.parameters.flatMap((each) =>
    each === undefined ? [] : [[each.declaration.name, effectiveState(each, entries.job)]],
  );
  return { ...Object.fromEntries(states), job: entries.job.state };
}

describe("a parameter", () => {
  test("that was there stays ready, whoever declared it", () => {
    const known = [parameter("own"), parameter("of-job", OF_JOB)];
    const found = [parameter("own"), parameter("of-job")];
    expect(statesAfter(READY, known, found, 10)).toEqual({
      own: "ready",
      "of-job": "ready",
      job: "ready",
    });
  });

  test("that did not exist, or not as a whole, is gone, and keeps the highest epoch", () => {
    const known = [parameter("new", { lifecycle: lifecycle("ready", 3) }), parameter("half")];
    const half = parameter("half", { lifecycle: lifecycle("uninitialized", 2) });
    const entries = entriesAfter(READY, known, [half], 20);
    expect(entries.parameters).toMatchObject([
      { jobEpoch: 0, lifecycle: { state: "uninitialized", context: { epoch: 3 } } },
      { jobEpoch: 0, lifecycle: { state: "uninitialized", context: { epoch: 2 } } },
    ]);
  });

  test("that a rewind had taken away is ready again, and so is the job", () => {
    const known = [parameter("w", { lifecycle: lifecycle("uninitialized") })];
    const job = lifecycle("uninitialized", 2);
    expect(statesAfter(job, known, [parameter("w")], 20)).toEqual({ w: "ready", job: "ready" });
  });
});

describe("a parameter that was initialized", () => {
  const at = (generation: number) => [{ shard: 0, generation, seq: 3 }];
  const created = (generation: number): Parameter =>
    parameter("new", { lifecycle: lifecycle("ready", 1, { at: at(generation) }) });

  test("after its shard had gone back stays as it is", () => {
    const known = created(2);
    expect(entriesAfter(READY, [known], [], 20).parameters).toEqual([known]);
    const half = parameter("new", { lifecycle: lifecycle("uninitialized", 1) });
    expect(entriesAfter(READY, [known], [half], 20).parameters).toEqual([known]);
  });

  test("before is gone", () => {
    expect(statesAfter(READY, [created(1)], [], 20)).toMatchObject({ new: "uninitialized" });
  });
});

describe("a job", () => {
  test("that was being initialized is not initialized, with all that was declared for it", () => {
    const known = [parameter("own"), parameter("of-job", OF_JOB)];
    const found = [parameter("own"), parameter("of-job")];
    expect(statesAfter(READY, known, found, 9)).toEqual({
      own: "ready",
      "of-job": "uninitialized",
      job: "uninitialized",
    });
  });

  test("whose parameters are created one by one stays as it is", () => {
    const never = lifecycle("uninitialized", 0);
    expect(statesAfter(never, [parameter("own")], [parameter("own")], 5)).toEqual({
      own: "ready",
      job: "uninitialized",
    });
  });

  test("changes its record, which hosts notice", () => {
    const { job } = entriesAfter(READY, [], [], 50);
    expect(job.context.revised).toBe(READY.context.revised + 1);
  });
});
