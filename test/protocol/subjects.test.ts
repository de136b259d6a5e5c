// Proves that subjects can be parsed into what they were built from: parsing gives back any name that
// building takes, no name reaches into another token, and whatever is not spelled as this job spells it is
// refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  HOST_VERBS,
  JobSubjects,
  LIFECYCLE_VERBS,
  TRAINER_VERBS,
} from "../../src/protocol/subjects.ts";

import { anyText, validId, validName } from "./arbitraries.ts";
import { codeOf } from "./refusal.ts";

const JOB = new JobSubjects("mnist");
const shardNumber = fc.nat(255);
const blockIndex = fc.nat(999_999_999);

describe("journal subjects", () => {
  test("of trainers come back as they were built", () => {
    fc.assert(
      fc.property(
        shardNumber,
        validId,
        fc.constantFrom(...TRAINER_VERBS),
        validName,
        blockIndex,
        (shard, trainer, verb, parameter, index) => {
          const subject = JOB.log(shard, trainer, verb, parameter, index);
          expect(subject).toMatch(/^[!-~]+$/);
          expect(subject.length).toBeLessThan(320);
          expect(subject.split(".")).toHaveLength(9);
          expect(JOB.parseLog(subject)).toEqual({
            by: "trainer",
            shard,
            trainer,
            verb,
            parameter,
            index,
          });
        },
      ),
    );
  });

  test.each(["batch", "clock"] as const)("of a trainer's %s name no block", (by) => {
    const trainer = "worker/1";
    expect(JOB.parseLog(JOB[by](7, trainer))).toEqual({ by, shard: 7, trainer });
  });

  test("of hosts come back as they were built", () => {
    for (const verb of HOST_VERBS) {
      expect(JOB.parseLog(JOB.hostLog(7, verb))).toEqual({ by: "host", shard: 7, verb });
    }
  });

  test.each([
    ["", "nothing"],
    ["ps.mnist", "expected a journal subject"],
    ["ps.other.log.0.trainer.t.push.w.0", "another job"],
    ["px.mnist.log.0.trainer.t.push.w.0", "another root"],
    ["ps.mnist.block.0.trainer.t.push.w.0", "no journal"],
    ["ps.mnist.log.x.trainer.t.push.w.0", "no shard"],
    ["ps.mnist.log.00.trainer.t.push.w.0", "a shard spelled otherwise"],
    ["ps.mnist.log.-1.trainer.t.push.w.0", "a negative shard"],
    ["ps.mnist.log.1e1.trainer.t.push.w.0", "a shard spelled otherwise"],
    ["ps.mnist.log.0.trainer.t.push.w", "no index"],
    ["ps.mnist.log.0.trainer.t.push.w.", "no index"],
    ["ps.mnist.log.0.trainer.t.push.w.01", "an index spelled otherwise"],
    ["ps.mnist.log.0.trainer.t.push.w.1234567890", "an index of ten digits"],
    ["ps.mnist.log.0.trainer.t.push.w.0.0", "a token too many"],
    ["ps.mnist.log.0.trainer.t.rules.w.0", "a host's verb"],
    ["ps.mnist.log.0.trainer.t.pull.w.0", "no verb of the journal"],
    ["ps.mnist.log.0.trainer.t.batch.w", "a batch with a block"],
    ["ps.mnist.log.0.trainer.t.batch.w.0", "a batch with a block"],
    ["ps.mnist.log.0.host.push", "a trainer's verb"],
    ["ps.mnist.log.0.host.rules.1", "a token too many"],
    ["ps.mnist.log.0.nobody.rules", "neither trainer nor host"],
    ["ps.mnist.log.0.trainer.t.push.a..0", "an empty token"],
    ["PS.mnist.log.0.trainer.t.push.w.0", "another case"],
  ])("refuse %s: %s", (subject) => {
    expect(codeOf(() => JOB.parseLog(subject))).toBe("BAD_MESSAGE");
  });

  test.each([
    ["ps.mnist.log.0.trainer..push.w.0", "an empty id"],
    ["ps.mnist.log.0.trainer.t.push..0", "an empty name"],
    ["ps.mnist.log.0.trainer.=74.push.w.0", "an id escaped without need"],
    ["ps.mnist.log.0.trainer.=host.push.w.0", "a host's place"],
    ["ps.mnist.log.0.trainer.*.push.w.0", "a wildcard"],
    [`ps.mnist.log.0.trainer.${"t".repeat(65)}.push.w.0`, "an id too long"],
    [`ps.mnist.log.0.trainer.t.push.${"w".repeat(201)}.0`, "a name too long"],
  ])("refuse %s: %s", (subject) => {
    expect(codeOf(() => JOB.parseLog(subject))).toBe("BAD_NAME");
  });

  test("end in a refusal, never in another error, whatever the broker delivers", () => {
    const token = fc.oneof(anyText, fc.constantFrom("ps", "mnist", "log", "0", "trainer", "push"));
    fc.assert(
      fc.property(fc.array(token, { maxLength: 10 }), (tokens) => {
        const subject = tokens.join(".");
        expect(["", "BAD_MESSAGE", "BAD_NAME"]).toContain(codeOf(() => JOB.parseLog(subject)));
      }),
    );
  });
});

test("a name reaches into no other token of any subject", () => {
  fc.assert(
    fc.property(validName, validId, (name, id) => {
      const subjects = [
        [JOB.log(1, id, "push", name, 2), 9],
        [JOB.pull(name, 2, id), 7],
        [JOB.block(name, 2), 7],
        [JOB.outcome(1, id), 6],
        [JOB.owner(1, id, "pull"), 6],
        [JOB.lifecycle(id, "join"), 5],
        [JOB.control(id, "save"), 5],
        [JOB.piece(1, name, 2, 0), 8],
        [JOB.inbox(id), 2],
        [JOB.hostInbox(id), 3],
      ] as const;
      for (const [subject, tokens] of subjects) {
        expect(subject.split(".")).toHaveLength(tokens);
        expect(subject.replace(".*.pull", "")).not.toMatch(/[\s*>]/);
      }
    }),
  );
});

test("the sender of a request is in its subject", () => {
  fc.assert(
    fc.property(validId, fc.constantFrom(...LIFECYCLE_VERBS), (id, verb) => {
      expect(JOB.parseSender(JOB.lifecycle(id, verb))).toEqual({ id, verb });
    }),
  );
  expect(JOB.parseSender(JOB.pull("w", 3, "t.1"))).toEqual({ id: "t.1", verb: "pull" });
  expect(JOB.parseSender(JOB.outcome(3, "t"))).toEqual({ id: "t", verb: "outcome" });
  expect(codeOf(() => JOB.parseSender("ps.mnist.lifecycle..join"))).toBe("BAD_NAME");
  expect(codeOf(() => JOB.parseSender(`ps.mnist.lifecycle.${"t".repeat(65)}.join`))).toBe(
    "BAD_NAME",
  );
  expect(codeOf(() => JOB.parseSender(""))).toBe("BAD_NAME");
});

describe("inboxes", () => {
  test("of a trainer are below its own prefix", () => {
    for (const reply of ["_INBOX_mnist.t.x", "_INBOX_mnist.t.x.y.0", "_INBOX_mnist.t.a,b"]) {
      expect(JOB.isTrainerInbox(reply, "t")).toBe(true);
    }
    expect(JOB.isTrainerInbox("_INBOX_mnist.a=2Eb.x", "a.b")).toBe(true);
  });

  test.each([
    "",
    "_INBOX_mnist.t",
    "_INBOX_mnist.t.",
    "_INBOX_mnist.t..x",
    "_INBOX_mnist.t.x.",
    "_INBOX_mnist.tt.x",
    "_INBOX_mnist.other.x",
    "_INBOX_other.t.x",
    "_INBOX.t.x",
    "_INBOX_mnist.=host.t.x",
    "$KV.PS_mnist.job",
    "ps.mnist.log.0.host.drop",
    "_INBOX_mnist.t.*",
    "_INBOX_mnist.t.>",
    "_INBOX_mnist.t.a b",
    "_INBOX_mnist.t.a\tb",
    "_INBOX_mnist.t.a\r\nPUB x 0\r\n",
    "_INBOX_mnist.t.\0",
    "_INBOX_mnist.t.\u00a0",
    "_INBOX_mnist.t.é",
  ])("of another are refused: %j", (reply) => {
    expect(JOB.isTrainerInbox(reply, "t")).toBe(false);
  });

  test("that the broker makes between accounts are answered only where there are two", () => {
    const across = new JobSubjects("mnist", true);
    expect(across.mayAnswer("_R_.x.y", "t")).toBe(true);
    expect(across.mayAnswer("_INBOX_mnist.t.x", "t")).toBe(true);
    for (const reply of ["_R_", "_R_.*", "_GR_.x", "_INBOX_mnist.other.x"]) {
      expect(across.mayAnswer(reply, "t")).toBe(false);
    }
    expect(JOB.mayAnswer("_R_.x.y", "t")).toBe(false);
    expect(JOB.mayAnswer("_INBOX_mnist.t.x", "t")).toBe(true);
  });

  test("of a host belong to that host, and to no trainer", () => {
    expect(JOB.isHostInbox(`${JOB.hostInbox("h.1")}.x`, "h.1")).toBe(true);
    expect(JOB.isHostInbox(`${JOB.hostInbox("h.1")}.x`, "h.2")).toBe(false);
    expect(JOB.isHostInbox("_INBOX_mnist.t.x", "t")).toBe(false);
    fc.assert(
      fc.property(validId, validId, (trainer, host) => {
        expect(JOB.isTrainerInbox(`${JOB.hostInbox(host)}.x`, trainer)).toBe(false);
      }),
    );
  });

  test("of one trainer are never those of another", () => {
    fc.assert(
      fc.property(validId, validId, (a, b) => {
        expect(JOB.isTrainerInbox(`${JOB.inbox(a)}.x`, b)).toBe(a === b);
      }),
    );
  });
});

describe("streams", () => {
  test("of journals say shard and generation", () => {
    expect(JOB.journalStream(3, 1)).toBe("PS_mnist_3");
    expect(JOB.journalStream(3, 2)).toBe("PS_mnist_3_2");
    fc.assert(
      fc.property(shardNumber, fc.integer({ min: 1, max: 999_999 }), (shard, generation) => {
        const stream = JOB.journalStream(shard, generation);
        expect(JOB.parseJournalStream(stream)).toEqual({ shard, generation });
      }),
    );
  });

  test.each([
    "",
    "PS_mnist",
    "PS_mnist_",
    "PS_mnist_SNAPSHOT",
    "PS_mnist_LEASE",
    "PS_mnist_01",
    "PS_mnist_1_1",
    "PS_mnist_1_x",
    "PS_mnist_1_",
    "PS_mnist_1_2_3",
    "PS_other_1",
    "XX_mnist_1",
    "PS_mnist_1_ROOM",
  ])("of anything else are refused: %s", (stream) => {
    expect(codeOf(() => JOB.parseJournalStream(stream))).toBe("BAD_MESSAGE");
  });

  test("and buckets of one job are different, and are not those of another", () => {
    const names = (job: JobSubjects): string[] => [
      job.journalStream(1, 1),
      job.journalStream(1, 2),
      job.snapshotStream(),
      job.storageProbeStream(),
      `KV_${job.bucket()}`,
      `KV_${job.leaseBucket()}`,
    ];
    const all = [...names(JOB), ...names(new JobSubjects("mnist-1"))];
    expect(new Set(all).size).toBe(all.length);
  });
});

describe("pull subjects", () => {
  test("say which block is pulled, as those who hear all pulls need it", () => {
    fc.assert(
      fc.property(validName, blockIndex, validId, (parameter, index, trainer) => {
        const subject = JOB.pull(parameter, index, trainer);
        expect(JOB.parsePull(subject)).toEqual({ parameter, index });
        expect(subject.split(".")).toHaveLength(JOB.allPulls().split(".").length);
      }),
    );
  });

  test("that name no block say nothing", () => {
    expect(JOB.parsePull("ps.mnist.block.w.01.t.pull")).toBeUndefined();
    expect(JOB.parsePull("ps.mnist.block.=zz.1.t.pull")).toBeUndefined();
    expect(JOB.parsePull("ps.mnist.block")).toBeUndefined();
  });
});
