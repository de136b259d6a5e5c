// Proves that the table of `pserver jobs` fits narrow terminals, and what it keeps there.
import { expect, test } from "vitest";
import { describeJobs } from "../../../src/cli/commands/jobs.ts";
import { makePaint } from "../../../src/cli/output/colors.ts";

test.each([60, 80, 120])("fits %i columns with jobs, states and hosts", (width) => {
  const job = {
    job: "recommendation-two-tower-2026-11-nightly",
    state: "uninitialized",
    shards: 256,
    journal: "memory",
    hosts: ["a", "b", "c"],
    leases: "kv",
    bytes: 123_456_789_012,
    streams: 260,
  } as const;
  const etcd = { ...job, job: "m", hosts: undefined };
  const lines = describeJobs([job, etcd], { paint: makePaint(false), width });
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  expect(lines[1]).toMatch(/^recomm.*nightly +uninitialized +3 /);
  expect(lines[2]).toMatch(/^m +uninitialized +in etcd/);
});
