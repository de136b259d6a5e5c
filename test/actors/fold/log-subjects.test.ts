// Proves that a subject is parsed as the protocol says, whether it is cached, was dropped from the cache, or
// is invalid.
import { expect, test } from "vitest";
import { subjectCrcOf } from "../../../src/actors/fold/journal-checksum.ts";
import { LogSubjects } from "../../../src/actors/fold/journal-record.ts";
import { JobSubjects } from "../../../src/protocol/subjects.ts";

const JOB = new JobSubjects("digits");

test("a subject is read as the protocol says, however often and after however many others", () => {
  const subjects = new LogSubjects(JOB);
  const many = Array.from({ length: 5_000 }, (_, i) => JOB.log(3, `t.${i % 7}`, "push", "w:0", i));
  for (const subject of [...many, ...many.slice(0, 100), ...many.slice(0, 100)]) {
    expect(subjects.read(subject)).toEqual({
      parsed: JOB.parseLog(subject),
      crc: subjectCrcOf(subject),
    });
  }
});

test("a subject that is not of the job's journals is refused the second time, too", () => {
  const subjects = new LogSubjects(JOB);
  const foreign = new JobSubjects("other").log(3, "t", "push", "w", 0);
  for (const subject of [foreign, foreign, "ps.digits.log.3.trainer.t.push.=4.0", ""]) {
    expect(subjects.read(subject)).toEqual({ parsed: undefined, crc: subjectCrcOf(subject) });
  }
});
