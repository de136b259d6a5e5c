// Proves what a host's record in a journal depends on: where it is, or why it is not stored; which generation is the newest; and what leaving a journal asks of the broker. The broker is a
// table of answers.
import { JetStreamApiError, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { Journal } from "../../../src/actors/journal/journal.ts";
import { JobSubjects } from "../../../src/protocol/index.ts";

function journalOn(
  { streams = {}, publish }: { streams?: object; publish?: (...sent: unknown[]) => unknown },
  storage: "file" | "memory" = "file",
): Journal {
  return new Journal({
    manager: { streams } as unknown as JetStreamManager,
    client: { publish } as unknown as JetStreamClient,
    subjects: new JobSubjects("j"),
    settings: { storage, bytesMax: 1, replicas: 1, rules: 1, synchronization: { mode: "async" } },
    shard: 3,
  });
}

describe("a host's record", () => {
  test("is where the broker says", async () => {
    const sent: unknown[] = [];
    const journal = journalOn({
      publish: (subject) => {
        sent.push(subject);
        return Promise.resolve({ stream: "PS_j_3_4", seq: 9 });
      },
    });
    const position = await journal.append({ verb: "floor", session: 0 });
    expect(position).toEqual({ generation: 4, seq: 9 });
    expect(sent).toEqual(["ps.j.log.3.host.floor"]);
  });

  test.each([
    [503, 10077, "JOURNAL_FAULT"],
    [400, 10002, "JOURNAL_FULL"],
  ])("that is refused with %i %i is %s", async (code, err_code, expected) => {
    const refusal = new JetStreamApiError({ code, err_code, description: "it said so" });
    const journal = journalOn({ publish: () => Promise.reject(refusal) });
    await expect(journal.append({ verb: "floor", session: 0 })).rejects.toMatchObject({
      code: expected,
      details: { shard: 3 },
    });
  });
});

test("the newest generation is the highest of those that take the journal's subjects, or 0", async () => {
  const asked: unknown[] = [];
  let there = ["PS_j_3_2", "PS_j_3_11", "PS_j_3"];
  const names = (subject: string): string[] => {
    asked.push(subject);
    return there;
  };
  const journal = journalOn({ streams: { names } });
  expect(await journal.newestGeneration()).toBe(11);
  there = [];
  expect(await journal.newestGeneration()).toBe(0);
  expect(new Set(asked)).toEqual(new Set(["ps.j.log.3.host.rules"]));
});

describe("leaving a journal", () => {
  test("that is empty limits it to one byte: no bytes would be no limit", async () => {
    const configs: unknown[] = [];
    const state = { first_seq: 1, last_seq: 0, bytes: 0 };
    const journal = journalOn({
      streams: {
        info: () => Promise.resolve({ created: "now", config: { max_bytes: 99 }, state }),
        update: (_stream: string, config: unknown) => {
          configs.push(config);
          return Promise.resolve();
        },
      },
    });
    await journal.setAside([2]);
    expect(configs).toEqual([{ subjects: ["ps.j.left.3.2"], max_bytes: 1 }]);
  });

  test("in memory asks nothing of the broker: the next one removes it", async () => {
    expect(await journalOn({}, "memory").setAside([1, 2])).toEqual(new Map());
  });
});
