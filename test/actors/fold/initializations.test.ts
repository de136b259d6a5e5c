// Proves what a shard keeps of the records by which hosts tell it that its job and parameters are initialized: the
// latest initialization, whatever order they come in; the parameters that are declared under the very epoch that the
// record names; all of it also after a snapshot. And nothing of it once the shard is the beginning of another job.
import { beforeEach, describe, expect, test } from "vitest";
import type { ReadyRecord } from "../../../src/protocol/messages/host-records.ts";
import { Folded } from "./folded.ts";

const TWO = Float32Array.of(1, 2);

let folded: Folded;

beforeEach(() => {
  folded = new Folded();
  folded.journal.declare(TWO, { parameter: "w" });
  folded.journal.declare(TWO, { parameter: "v", epoch: 3 });
  folded.apply();
});

/** Tells the shard of initializations; returns the one of the job that it knows. */
function tell(record: Omit<ReadyRecord, "verb">) {
  folded.journal.host({ verb: "ready", ...record });
  folded.apply();
  return folded.shard.saveState().job;
}

/** Names of the parameters that the shard knows as initialized. */
function initialized(shard = folded.shard): string[] {
  const { declared = [] } = shard.saveState();
  return declared.filter((each) => each.initialized === true).map(({ name }) => name);
}

describe("of the job", () => {
  test("the initialization is known that is revised most often, then the one of the higher epoch", () => {
    expect(folded.shard.saveState().job).toBeUndefined();
    const first = { epoch: 2, revised: 1, session: 5 };
    expect(tell({ job: first, parameters: [] })).toEqual(first);
    expect(tell({ job: { epoch: 9, revised: 0, session: 6 }, parameters: [] })).toEqual(first);
    expect(tell({ job: { epoch: 1, revised: 1, session: 6 }, parameters: [] })).toEqual(first);
    const epoch = { epoch: 3, revised: 1, session: 7 };
    expect(tell({ job: epoch, parameters: [] })).toEqual(epoch);
    const revised = { epoch: 1, revised: 2, session: 8 };
    expect(tell({ job: revised, parameters: [] })).toEqual(revised);
    expect(tell({ parameters: [] })).toEqual(revised);
  });
});

describe("of a parameter", () => {
  test("the initialization is known that names its epoch, until it is declared under another", () => {
    const parameters = [
      ["w", 2],
      ["v", 3],
      ["other", 1],
    ] as const;
    tell({ parameters });
    expect(initialized()).toEqual(["v"]);
    tell({ parameters: [["w", 1]] });
    expect(initialized()).toEqual(["v", "w"]);
    folded.journal.declare(TWO, { parameter: "v", epoch: 4 });
    folded.apply();
    expect(initialized()).toEqual(["w"]);
    tell({ parameters: [["v", 3]] });
    expect(initialized()).toEqual(["w"]);
  });
});

test("a snapshot has what is known, and the beginning of another job has nothing of it", () => {
  const job = { epoch: 2, revised: 1, session: 5 };
  tell({ job, parameters: [["w", 1]] });
  const restored = folded.restored();
  expect([restored.saveState().job, initialized(restored)]).toEqual([job, ["w"]]);
  restored.detach();
  expect([restored.saveState().job, initialized(restored)]).toEqual([undefined, []]);
});

test("a record that cannot be read changes nothing", () => {
  const job = { epoch: 2, revised: 1, session: 5 };
  tell({ job, parameters: [["w", 1]] });
  const before = folded.content();
  for (const wrong of [
    { job: { epoch: 0, revised: 9, session: 9 }, parameters: [] },
    { job: { epoch: 9, revised: 9, session: 9 }, parameters: [["v", 0]] as const },
  ]) {
    tell(wrong);
    expect([folded.content(), initialized()]).toEqual([before, ["w"]]);
  }
});
