// Proves on a real broker, with the compiled command: what `up` and `host` serve over HTTP is what a training has done,
// in every host of the command and while the broker hangs; what is asked for as JSON is what the commands print; and an
// address that cannot be had ends the command with the reason, and nothing is left running.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { type Client, connect } from "../../../src/client/index.ts";
import { run, start } from "../../cli/spawn-command.ts";
import { freePorts } from "../../support/free-ports.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { HANG_MS } from "../../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 100 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-http-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

interface Up {
  readonly url: string;
  readonly http: string;
  readonly token: string;
  readonly brokerPid: number;
  stop(): Promise<void>;
}

async function up(...args: string[]): Promise<Up> {
  const store = join(home, "store");
  const command = start([
    ...["up", "--port", "0", "--store", store, "--shards", "2", "--json", "--http", "0"],
    ...args,
  ]);
  const ready = JSON.parse(await command.firstLine);
  const token = (await readFile(ready.tokenFile, "utf8")).trim();
  const stop = async (): Promise<void> => {
    command.child.kill("SIGTERM");
    expect((await command.finished).code).toBe(0);
  };
  return { url: ready.url, http: ready.http, token, brokerPid: ready.brokers[0].pid, stop };
}

async function trainer({ url, token }: Up, id: string): Promise<Client> {
  const client = await connect({ url, token, job: "default", trainer: id, timeoutMs: HANG_MS });
  onTestFinished(() => client.close());
  return client;
}

async function get(url: string, headers = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { headers });
  return { status: response.status, text: await response.text() };
}

async function json(url: string): Promise<{ status: number; value: never }> {
  const { status, text } = await get(url);
  return { status, value: JSON.parse(text) as never };
}

/** Samples of `/metrics` by their names and labels. */
async function metrics({ http }: Up): Promise<ReadonlyMap<string, number>> {
  const { text } = await get(`${http}/metrics`);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

function sumOf(samples: ReadonlyMap<string, number>, prefix: string): number {
  const found = [...samples].filter(([name]) => name.startsWith(prefix));
  return found.reduce((sum, [, value]) => sum + value, 0);
}

/** What set-up has unpacked, or the first on the PATH; undefined where there is none. */
const PROMTOOL = [
  join(packageRoot(), ".tools", "bin"),
  ...(process.env["PATH"] ?? "").split(delimiter),
]
  .map((directory) => join(directory, "promtool"))
  .find((path) => existsSync(path));

test.skipIf(PROMTOOL === undefined)("promtool accepts the alert rules", () => {
  const rules = join(packageRoot(), "deploy", "prometheus", "rules.yml");
  const checked = spawnSync(PROMTOOL ?? "", ["check", "rules", rules], { encoding: "utf8" });
  expect([checked.status, checked.stderr]).toEqual([0, ""]);
});

test.skipIf(PROMTOOL === undefined)("promtool accepts the configuration of compose.yaml", () => {
  const file = join(packageRoot(), "deploy", "prometheus", "prometheus.yml");
  // Without the files that it names: the token is made where it runs.
  const args = ["check", "config", "--syntax-only", file];
  const checked = spawnSync(PROMTOOL ?? "", args, { encoding: "utf8" });
  expect([checked.status, checked.stderr]).toEqual([0, ""]);
});

test("the metrics of all hosts of a command are those of the training", async () => {
  const server = await up("--hosts", "2", "--http-trainers");
  const client = await trainer(server, "a");
  for (const name of ["v", "w", "x", "y"]) {
    await client.createIfNotAlreadyCreated(name, new Float32Array(100));
  }
  for (const name of ["v", "w", "x", "y"]) {
    for (let i = 0; i < 5; i++)
      await client.sendGrads({ [name]: new Float32Array(100) }, { learningRate: 1 });
  }
  await client.getParams(["v", "w", "x", "y"]);
  // Four parameters that were made, and twenty gradients.
  await vi.waitFor(async () => {
    const samples = await metrics(server);
    const records = 'pserver_records_total{job="default",verb=';
    const applied =
      sumOf(samples, `${records}"push",outcome="applied"`) +
      sumOf(samples, `${records}"batch",outcome="applied"`) +
      sumOf(samples, `${records}"init",outcome="applied"`);
    expect(applied).toBe(24);
    expect(samples.get('pserver_pushed_bytes_total{job="default"}')).toBe(24 * 400);
    expect(sumOf(samples, 'pserver_trainer_records_total{job="default",trainer="a",')).toBe(24);
    expect(samples.get('pserver_read_seconds_count{job="default"}')).toBeGreaterThan(0);
    expect(samples.get('pserver_pulled_bytes_total{job="default"}')).toBeGreaterThan(1_600);
    expect(samples.get('pserver_takeovers_total{job="default"}')).toBeGreaterThanOrEqual(2);
    expect(samples.get('pserver_trainers{job="default",state="live"}')).toBe(1);
    const folded = sumOf(samples, "pserver_folded_seq{");
    expect(folded).toBe(sumOf(samples, "pserver_shard_seq{"));
    expect(folded).toBeGreaterThanOrEqual(24);
    expect(samples.get('pserver_tape_bytes{job="default"}')).toBeGreaterThan(0);
    for (const shard of [0, 1]) {
      expect(
        samples.get(`pserver_shard_state{job="default",shard="${shard}",state="serving"}`),
      ).toBe(1);
    }
  }, WAIT);
  const openMetrics = await get(`${server.http}/metrics`, {
    Accept: "application/openmetrics-text",
  });
  expect(openMetrics.text.endsWith("\n# EOF\n")).toBe(true);
  if (PROMTOOL !== undefined) {
    const { text } = await get(`${server.http}/metrics`);
    const checked = spawnSync(PROMTOOL, ["check", "metrics"], { input: text, encoding: "utf8" });
    expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, "", ""]);
  }
  expect(await json(`${server.http}/readyz`)).toEqual({
    status: 200,
    value: { ready: true, shards: 2 },
  });
  await client.close();
  await server.stop();
});

test("the JSON is what the commands print, and a log comes in pages", async () => {
  const server = await up();
  const client = await trainer(server, "a");
  await client.createIfNotAlreadyCreated("v", new Float32Array(8));
  await client.createIfNotAlreadyCreated("w", new Float32Array(8));
  for (let i = 0; i < 4; i++) {
    const grads = { v: new Float32Array(8), w: new Float32Array(8) };
    await client.sendGrads(grads, { learningRate: 1 });
  }
  await client.note({ loss: 1 });
  await client.close();
  const environment = { PSERVER_URL: server.url, NATS_TOKEN: server.token };
  const printed = async (...args: string[]): Promise<never[]> => {
    const { code, stdout } = await run([...args, "--json"], { environment });
    expect(code).toBe(0);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as never);
  };
  expect((await json(`${server.http}/api/jobs`)).value).toMatchObject([
    { job: "default", shards: 2 },
  ]);
  const [status = {} as never] = await printed("status");
  const shown = await json(`${server.http}/api/jobs/default`);
  expect(shown.status).toBe(200);
  expect(Object.keys(shown.value)).toEqual(Object.keys(status));
  expect((shown.value as { parameters: unknown }).parameters).toEqual(
    (status as { parameters: unknown }).parameters,
  );
  // The tape has all lines about a second later.
  const log = await printed("log");
  expect(log.length).toBeGreaterThanOrEqual(11);
  await vi.waitFor(async () => {
    const listed: unknown[] = [];
    let next = "";
    for (;;) {
      const after = next === "" ? "" : `&after=${next}`;
      const { status: code, value } = await json(
        `${server.http}/api/jobs/default/log?limit=3${after}`,
      );
      expect(code).toBe(200);
      const page = value as { updates: unknown[]; next: string };
      expect(page.updates.length).toBeLessThanOrEqual(3);
      next = page.next;
      if (page.updates.length === 0) break;
      listed.push(...page.updates);
    }
    expect(listed).toEqual(log);
  }, WAIT);
  const ofV = await json(`${server.http}/api/jobs/default/log?param=v&trainer=a&since=1h%20ago`);
  expect(
    (ofV.value as { updates: { parameter: string }[] }).updates.map((each) => each.parameter),
  ).toEqual(log.flatMap(({ parameter }) => (parameter === "v" ? [parameter] : [])));
  const codes = async (path: string): Promise<unknown[]> => {
    const { status: code, value } = await json(`${server.http}/api/jobs/${path}`);
    return [code, (value as { error: { code: string } }).error.code];
  };
  expect(await codes("nobody/log")).toEqual([404, "BAD_NAME"]);
  expect(await codes("nobody")).toEqual([404, "BAD_NAME"]);
  expect(await codes("a.b")).toEqual([404, "BAD_NAME"]);
  expect(await codes("default/log?limit=1001")).toEqual([400, "BAD_VALUE"]);
  expect(await codes("default/log?since=step:1")).toEqual([400, "BAD_VALUE"]);
  expect(await codes("default/log?after=x")).toEqual([400, "BAD_VALUE"]);
  expect(await codes("default/log?color=red")).toEqual([400, "BAD_VALUE"]);
  expect(await codes("default/nothing")).toEqual([404, "BAD_PATH"]);
  await server.stop();
});

test("scrapes are answered while the broker hangs, and nothing else is held up", async () => {
  const server = await up();
  await freeze(server.brokerPid);
  try {
    for (const path of ["metrics", "healthz"]) {
      expect((await get(`${server.http}/${path}`)).status).toBe(200);
    }
    const { status, value } = await json(`${server.http}/api/jobs`);
    expect([status, Object.keys(value)]).toEqual([503, ["error"]]);
    expect((await get(`${server.http}/metrics`)).status).toBe(200);
  } finally {
    thaw(server.brokerPid);
  }
  await vi.waitFor(async () => {
    expect((await get(`${server.http}/readyz`)).status).toBe(200);
  }, WAIT);
  await server.stop();
});

test("a host that waits for its broker is alive, and not ready", async () => {
  // Greets, and never answers.
  const silent = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(
      'INFO {"version":"2.12.0","jetstream":true,"max_payload":8388608,"server_id":"x"}\r\n',
    );
  });
  await once(silent.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as { port: number };
  const [httpPort = 0] = await freePorts(1);
  const at = ["--url", `nats://127.0.0.1:${port}`, "--http", String(httpPort)];
  const command = start(["host", ...at, "--model-dir", home]);
  const http = `http://127.0.0.1:${httpPort}`;
  await vi.waitFor(async () => expect((await get(`${http}/healthz`)).status).toBe(200), WAIT);
  expect(await json(`${http}/readyz`)).toEqual({
    status: 503,
    value: { ready: false, hosts: 0, notServed: [] },
  });
  expect((await get(`${http}/metrics`)).text).toContain("pserver_build_info{");
  command.child.kill("SIGTERM");
  expect((await command.finished).code).toBe(130);
});

test("an address that cannot be had ends the command, with the reason", async () => {
  const taken = createServer();
  await once(taken.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as { port: number };
  const store = join(home, "store");
  const place = ["--store", store, "--port", "0"];
  const busy = await run(["up", ...place, "--http", String(port), "--json"]);
  expect(busy.code).toBe(1);
  expect(JSON.parse(busy.stderr).error).toMatchObject({
    code: "ADDRESS_IN_USE",
    message: `--http: another process listens on 127.0.0.1:${port}`,
  });
  const outside = await run(["host", "--http", "0.0.0.0:0", "--model-dir", home, "--json"]);
  expect(outside.code).toBe(3);
  expect(JSON.parse(outside.stderr).error).toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("other machines can reach 0.0.0.0, so requests need a token"),
  });
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, "two words");
  const bad = await run(["up", ...place, "--http-token", tokenFile, "--json"]);
  expect([bad.code, JSON.parse(bad.stderr).error.code]).toEqual([3, "BAD_VALUE"]);
  const nowhere = await run(["host", "--http-token", tokenFile, "--model-dir", home, "--json"]);
  expect([nowhere.code, JSON.parse(nowhere.stderr).error.code]).toEqual([3, "BAD_VALUE"]);
});

test("with a token, metrics and JSON are for who has it, and health is for all", async () => {
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, "secret\n");
  const server = await up("--http-token", tokenFile);
  for (const path of ["metrics", "api/jobs"]) {
    expect((await get(`${server.http}/${path}`)).status).toBe(401);
    const headers = { Authorization: "Bearer secret" };
    expect((await get(`${server.http}/${path}`, headers)).status).toBe(200);
  }
  for (const path of ["healthz", "readyz"]) {
    expect((await get(`${server.http}/${path}`)).status).toBe(200);
  }
  await server.stop();
});
