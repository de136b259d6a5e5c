// Proves what `/metrics`, `/healthz` and `/readyz` say of reports: each number under its name, no label twice, nothing
// in place of what is not known, and sums that never fall when a host ends.
import { expect, test } from "vitest";
import { NO_COUNTS, OwnerCounters } from "../../src/actors/owner/owner-counters.ts";
import { DistantHost } from "../../src/http/distant-host.ts";
import { healthRoute, metricsRoute, readyRoute } from "../../src/http/health.ts";
import type { HttpAnswer, Route } from "../../src/http/http-server.ts";
import { WatchedHosts } from "../../src/http/watched-hosts.ts";
import { hostOf, reportOf, shardOf } from "./reports.ts";

const BUILD = { version: "1.2.3", node: "20" };

async function ask(route: Route, accept?: string): Promise<HttpAnswer> {
  const signal = new AbortController().signal;
  const query = new URLSearchParams();
  return await route.answer({ path: [], query, change: undefined, accept, signal });
}

/** The lines of samples of a name. */
async function samplesOf(hosts: WatchedHosts, name: string): Promise<string[]> {
  const { body } = await ask(metricsRoute(hosts, BUILD));
  return body
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

function watched(...reports: Parameters<typeof hostOf>[0][]): WatchedHosts {
  const hosts = new WatchedHosts("j");
  for (const [i, report] of reports.entries()) hosts.set(`host ${i}`, hostOf(report));
  return hosts;
}

test("a shard's numbers", async () => {
  const hosts = watched(reportOf({ shards: [shardOf(0), shardOf(1, { closedStep: 7 })] }));
  const numbers = {
    pserver_shard_seq: 12,
    pserver_folded_seq: 10,
    pserver_snapshot_seq: 4,
    pserver_journal_bytes: 1_000,
    pserver_journal_limit_bytes: 9_000,
  };
  for (const [name, value] of Object.entries(numbers)) {
    expect(await samplesOf(hosts, name)).toEqual([
      `${name}{job="j",shard="0"} ${value}`,
      `${name}{job="j",shard="1"} ${value}`,
    ]);
  }
  expect(await samplesOf(hosts, "pserver_step_closed")).toEqual([
    'pserver_step_closed{job="j",shard="1"} 7',
  ]);
});

test("a shard that is not taken over yet has a state, and no numbers", async () => {
  const shard = shardOf(0, { state: "taking-over", generation: 0 });
  const hosts = watched(reportOf({ shards: [shard] }));
  expect(
    (await samplesOf(hosts, "pserver_shard_state")).filter((line) => line.endsWith(" 1")),
  ).toEqual(['pserver_shard_state{job="j",shard="0",state="taking-over"} 1']);
  expect(await samplesOf(hosts, "pserver_folded_seq")).toEqual([]);
});

test("no sample comes twice while two hosts name a shard: who serves it is right", async () => {
  const leaving = reportOf({ shards: [shardOf(0, { state: "closed", foldedSeq: 3 })] });
  for (const hosts of [watched(leaving, reportOf()), watched(reportOf(), leaving)]) {
    expect(await samplesOf(hosts, "pserver_folded_seq")).toEqual([
      'pserver_folded_seq{job="j",shard="0"} 10',
    ]);
    const { body } = await ask(metricsRoute(hosts, BUILD));
    const names = body.split("\n").flatMap((line) => /^[^#].*(?= )/.exec(line)?.[0] ?? []);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("what is known of the whole job, from whichever host has looked", async () => {
  const at = (seq: number, generation = 1) => ({
    record: { generation, seq },
    snapshot: { generation, seq: 0 },
  });
  const whole = { tapeBytes: 77, members: 2, archived: [[at(9)], [at(4)], [at(99, 0)]] };
  const hosts = watched(
    reportOf({ liveTrainers: 3, whole }),
    reportOf({ shards: [], liveTrainers: 2 }),
  );
  expect(await samplesOf(hosts, "pserver_trainers")).toEqual([
    'pserver_trainers{job="j",state="live"} 3',
    'pserver_trainers{job="j",state="member"} 2',
  ]);
  expect(await samplesOf(hosts, "pserver_tape_bytes")).toEqual(['pserver_tape_bytes{job="j"} 77']);
  // One archiver has nothing of this generation.
  expect(await samplesOf(hosts, "pserver_archiver_lag_records")).toEqual([
    'pserver_archiver_lag_records{job="j",shard="0"} 10',
  ]);
});

test("what a host has counted stays counted when it ends", async () => {
  const counters = new OwnerCounters(false);
  counters.pulled(5);
  counters.observe("readSeconds", 1);
  const hosts = watched(reportOf({ counts: counters.counted, leasesLost: 1 }));
  const sums = async (): Promise<string[]> => [
    ...(await samplesOf(hosts, "pserver_pulled_bytes_total")),
    ...(await samplesOf(hosts, "pserver_leases_lost_total")),
    ...(await samplesOf(hosts, "pserver_read_seconds_count")),
  ];
  const before = await sums();
  expect(before.map((line) => line.split(" ")[1])).toEqual(["5", "1", "1"]);
  hosts.ended("host 0");
  expect(await sums()).toEqual(before);
  expect(await samplesOf(hosts, "pserver_folded_seq")).toEqual([]);
  // It is started again, under the same name.
  hosts.set("host 0", hostOf(reportOf({ counts: counters.counted })));
  expect((await sums()).map((line) => line.split(" ")[1])).toEqual(["10", "1", "2"]);
});

test("guards are counted by what they have done, also where that is nothing", async () => {
  const hosts = watched(reportOf({ counts: { ...NO_COUNTS, guarded: { clip: 4 } } }));
  expect(await samplesOf(hosts, "pserver_guarded_total")).toEqual([
    'pserver_guarded_total{job="j",action="reject"} 0',
    'pserver_guarded_total{job="j",action="clip"} 4',
    'pserver_guarded_total{job="j",action="set-aside"} 0',
  ]);
});

test("trainers are named only where they are counted one by one", async () => {
  expect(await samplesOf(watched(reportOf()), "pserver_trainer_records_total")).toEqual([]);
  const trainers = [["a", { applied: 1, rejected: 2, pushedBytes: 3 }]] as const;
  const hosts = watched(reportOf({ counts: { ...NO_COUNTS, trainers } }));
  expect(await samplesOf(hosts, "pserver_trainer_records_total")).toEqual([
    'pserver_trainer_records_total{job="j",trainer="a",outcome="applied"} 1',
    'pserver_trainer_records_total{job="j",trainer="a",outcome="rejected"} 2',
  ]);
});

test("the format is the one that is asked for", async () => {
  const { contentType, body } = await ask(
    metricsRoute(watched(), BUILD),
    "application/openmetrics-text",
  );
  expect(contentType).toMatch(/^application\/openmetrics-text; version=1\.0\.0/);
  expect(body).toMatch(/^# TYPE pserver_build info\n/);
  expect(body.endsWith("# EOF\n")).toBe(true);
});

test("ready is who serves every shard that falls to the hosts", async () => {
  const ready = async (hosts: WatchedHosts): Promise<unknown[]> => {
    const { status, body } = await ask(readyRoute(hosts));
    return [status, JSON.parse(body)];
  };
  expect(await ready(watched())).toEqual([503, { ready: false, hosts: 0, notServed: [] }]);
  expect(await ready(watched(reportOf()))).toEqual([200, { ready: true, shards: 1 }]);
  const failed = reportOf({ shards: [shardOf(0, { state: "failed" })], share: [0, 1] });
  const notServed = [
    { shard: 0, state: "failed" },
    { shard: 1, state: "unowned" },
  ];
  expect(await ready(watched(failed))).toEqual([503, { ready: false, hosts: 1, notServed }]);
});

test("healthy is who hears of its threads and of the hosts in other processes", async () => {
  const health = async (hosts: WatchedHosts): Promise<number> =>
    (await ask(healthRoute(hosts))).status;
  expect(await health(watched())).toBe(200);
  expect(await health(watched(reportOf()))).toBe(200);
  expect(await health(watched(reportOf({ silentMs: 10_001 })))).toBe(503);
  const hosts = new WatchedHosts("j");
  const distant = new DistantHost(reportOf({ silentMs: 10_001 }));
  hosts.set("host", distant);
  expect(await health(hosts)).toBe(503);
  distant.heard(reportOf());
  expect(await health(hosts)).toBe(200);
});
