// Proves that the flags of etcd reach every host that `pserver up` starts, that status and doctor work
// for such a job, and that wrong addresses and flags end the command at once with the code for them.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { type Finished, run, start } from "../../cli/spawn-command.ts";
import { startTestBroker } from "../../support/broker.ts";
import { TestEtcd } from "../../support/etcd.ts";

let etcd: TestEtcd;
let home: string;

beforeAll(async () => {
  etcd = await TestEtcd.start();
  home = await mkdtemp(join(tmpdir(), "pserver-etcd-command-"));
});

afterAll(async () => {
  await etcd.remove();
  await rm(home, { recursive: true, force: true });
});

/** Arguments of an `up` with a store of its own on a free port. */
function up(store: string, ...more: string[]): string[] {
  return ["up", "--port", "0", "--store", join(home, store), "--json", "--shards", "2", ...more];
}

test("up publishes all its hosts under the prefix, and takes them back", async () => {
  const flags = ["--etcd", etcd.url, "--etcd-prefix", "/team/a", "--advertise", "broker.example"];
  const command = start(up("one", "--hosts", "2", "--job", "mnist", ...flags));
  const { url } = JSON.parse(await command.firstLine) as { url: string };
  const found = Object.fromEntries(
    (await etcd.list("/team/a/ps")).map(({ key, value }) => [key, value]),
  );
  expect(found).toMatchObject({
    "/team/a/ps/0": "nats://broker.example:4222",
    "/team/a/ps/1": "nats://broker.example:4222",
    "/team/a/ps/job": "mnist",
    "/team/a/ps_desired": "2",
  });
  const status = await start(["status", "--url", url, "--job", "mnist", "--json"]).finished;
  expect(status.code).toBe(0);
  expect(JSON.parse(status.stdout).hosts).toHaveLength(2);
  const joining = await start(["host", "--url", url, "--job", "mnist", "--json"]).finished;
  expect(joining.code).toBe(3);
  expect(joining.stderr).toContain("JOB_EXISTS");
  command.child.kill("SIGINT");
  expect((await command.finished).code).toBe(0);
  expect((await etcd.list("/team/a/")).map(({ key }) => key)).toEqual(["/team/a/ps_id"]);
});

test("a job whose leases are in etcd is removed with its keys, given that etcd and no other", async () => {
  const flags = ["--etcd", etcd.url, "--etcd-prefix", "/team/r"];
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const at = ["--url", broker.url];
  const host = start([
    "host",
    ...at,
    "--job",
    "r",
    "--shards",
    "1",
    "--id",
    "host 1.a",
    ...flags,
    "--json",
  ]);
  await host.firstLine;
  const client = await connect({ url: broker.url, job: "r", trainer: "a" });
  expect(await client.beginInit()).toBe(true);
  await client.initParam("w", new Float32Array(2));
  await client.finishInit();
  await client.close();
  await etcd.until("/team/r/init_ps/done", (entries) => entries.length === 1);
  const remove = (...more: string[]): Promise<Finished> =>
    run(["remove", "r", ...at, "--yes", ...more]);
  expect((await remove(...flags)).stderr).toContain(
    "JOB_EXISTS: hosts of job r are alive: host 1.a.",
  );
  host.child.kill("SIGINT");
  expect((await host.finished).code).toBe(0);
  for (const wrong of [[], ["--etcd", etcd.url, "--etcd-prefix", "/team/q"]]) {
    const refused = await remove(...wrong);
    expect(refused).toMatchObject({ code: 3, stdout: "" });
    expect(refused.stderr).toContain("BAD_VALUE: job r keeps its leases in etcd ");
  }
  expect(await remove(...flags)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("removed etcd /team/r/init_ps/done"),
  });
  expect((await etcd.list("/team/r/")).map(({ key }) => key)).toEqual(["/team/r/ps_id"]);
});

test("without etcd it exits with the code for an unreachable server, and names the address", async () => {
  const command = start(up("two", "--etcd", "http://127.0.0.1:1"));
  const { code, stderr } = await command.finished;
  expect(code).toBe(2);
  expect(stderr).toContain("NO_ETCD");
  expect(stderr).toContain("http://127.0.0.1:1");
});

test.each([
  [["--etcd", "127.0.0.1:2379"], 128, "http://host:port"],
  [["--etcd", "http://a:1", "--etcd-prefix", "a"], 128, "etcd prefix"],
  [["--etcd", "http://a:1", "--advertise", "http://b"], 128, "nats://host:port"],
  [["--etcd-prefix", "/a"], 3, "--etcd"],
  [["--advertise", "nats://b"], 3, "--etcd"],
])("%j is refused", async (flags, code, says) => {
  const finished = await start(["host", "--url", "nats://127.0.0.1:1", ...flags]).finished;
  expect(finished.code).toBe(code);
  expect(finished.stderr).toContain(says);
});
