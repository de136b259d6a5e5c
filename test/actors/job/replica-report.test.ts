// Proves what is said about the copies of a job's streams in a cluster: which brokers are missing, which streams have
// fewer copies than the job asks for, and nothing about a job that asks for one.
import type { StreamInfo } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { reportReplicas } from "../../../src/actors/job/replica-report.ts";
import { checkReplicas } from "../../../src/cli/commands/doctor.ts";
import { describeLackingReplicas } from "../../../src/client/admin/participants.ts";

type Peers = NonNullable<NonNullable<StreamInfo["cluster"]>["replicas"]>;

function stream(name: string, leader: string | undefined, replicas: Peers) {
  const config = { name, num_replicas: 3 } as StreamInfo["config"];
  return { config, cluster: { name: "c", ...(leader === undefined ? {} : { leader }), replicas } };
}

const peer = (name: string, more: object = {}) =>
  ({ name, current: true, active: 0, offline: false, ...more }) as Peers[number];
const whole = stream("PS_j_0", "a", [peer("b"), peer("c")]);

test("all copies are there", () => {
  const report = reportReplicas([whole], 3);
  expect(report).toEqual({ wanted: 3, missing: [], lacking: [] });
  expect(describeLackingReplicas(report)).toBeUndefined();
  expect(checkReplicas([whole])).toMatchObject([{ status: "ok" }]);
});

test("a broker that is missing is named, with the streams that it leaves short", () => {
  const short = stream("PS_j_1", "b", [peer("a"), peer("c", { offline: true, current: false })]);
  const report = reportReplicas([short, whole], 3);
  expect(report).toEqual({ wanted: 3, missing: ["c"], lacking: [{ stream: "PS_j_1", copies: 2 }] });
  expect(describeLackingReplicas(report)).toBe("PS_j_1: 2 of 3 copies; not reached: c");
  expect(checkReplicas([short])).toMatchObject([{ status: "warn" }]);
});

test("a broker that has given no sign for longer than ten seconds is missing, too", () => {
  const silent = (seconds: number) => {
    const c = peer("c", { current: false, active: seconds * 1e9 });
    return reportReplicas([stream("PS_j_0", "a", [peer("b"), c])], 3);
  };
  expect(silent(10)).toMatchObject({ missing: [] });
  expect(silent(11)).toMatchObject({ missing: ["c"], lacking: [{ copies: 2 }] });
});

test("a copy that is behind does not count, and its broker is not missing", () => {
  const behind = stream("PS_j_0", "a", [peer("b", { current: false, lag: 9 }), peer("c")]);
  expect(reportReplicas([behind], 3)).toMatchObject({ missing: [], lacking: [{ copies: 2 }] });
});

test("without a leader nothing is stored", () => {
  const off = { offline: true, current: false };
  const lost = stream("PS_j_0", undefined, [peer("b", off), peer("c", off)]);
  const report = reportReplicas([lost, whole], 3);
  expect(describeLackingReplicas(report)).toBe(
    "PS_j_0: 0 of 3 copies; 1 without a leader, which store nothing; not reached: b, c",
  );
  expect(checkReplicas([lost])).toMatchObject([{ status: "fail" }]);
});

test("a job of one copy has nothing to report", () => {
  const config = { name: "PS_j_0", num_replicas: 1 } as StreamInfo["config"];
  expect(reportReplicas([{ config }], 1)).toBeUndefined();
  expect(checkReplicas([{ config }])).toEqual([]);
});
