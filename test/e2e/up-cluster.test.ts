// Proves `pserver up --cluster 3 --secure` as a user runs it: three brokers, a host process beside the one of the command,
// users and TLS; a trainer that connects as the command says; a broker that is killed and comes back, and two at once, which
// the command tells; a wiped directory; the end of all processes at Ctrl-C; and the same model after a new start. Also what
// is refused: a store of another kind, and connections of brokers and clients without a certificate or key.
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Client, connect } from "../../src/client/index.ts";
import { type Running, runProcess, start } from "../cli/spawn-command.ts";
import { HANG_MS } from "../support/limits.ts";
import { signalProcess } from "../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };
const JOB = "mnist";

let home: string;
let store: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-up-cluster-"));
  store = join(home, "store");
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** What the command prints about a broker. */
interface BrokerLine {
  readonly url: string;
  readonly pid: number;
  readonly store: string;
  readonly log: string;
  readonly routesPort: number;
}

/** What the command prints once it serves. */
interface Ready {
  readonly url: string;
  readonly hosts: readonly string[];
  readonly brokers: readonly BrokerLine[];
  readonly trainers: Readonly<Record<string, string>>;
}

async function up(...flags: string[]): Promise<{ running: Running; ready: Ready }> {
  const own = ["--cluster", "3", "--port", "0", "--store", store, "--job", JOB, "--json"];
  const running = start(["up", ...own, ...flags]);
  return { running, ready: JSON.parse(await running.firstLine) as Ready };
}

/** The variables in a file that the command names. */
async function variablesIn(file: string): Promise<Record<string, string>> {
  const lines = (await readFile(file, "utf8")).split("\n");
  return Object.fromEntries(
    lines
      .filter((line) => /^[A-Z_]+=/.test(line))
      .map((line): [string, string] => {
        const [name = "", value = ""] = line.split("=");
        return [name, value];
      }),
  );
}

/** A trainer that knows nothing but the variables of the file that the command names, and the address. */
async function trainer({ url, trainers }: Ready): Promise<Client> {
  const [file = ""] = Object.values(trainers);
  const environment = { ...(await variablesIn(file)), PSERVER_URL: url };
  return await connect({ timeoutMs: HANG_MS }, environment);
}

async function end(running: Running): Promise<void> {
  running.child.kill("SIGINT");
  expect(await running.finished).toMatchObject({ code: 0 });
}

async function isListening(port: number): Promise<boolean> {
  const socket = connectSocket({ host: "127.0.0.1", port });
  try {
    await once(socket, "connect");
    return true;
  } catch {
    // Refused.
    return false;
  } finally {
    socket.destroy();
  }
}

test("three brokers serve, fail, come back, and go on after a new start", async () => {
  const flags = ["--secure", "--shards", "2", "--hosts", "2"];
  const first = await up(...flags);
  expect(first.ready.brokers.map((broker) => broker.store)).toEqual(
    [1, 2, 3].map((number) => join(store, `broker-${number}`)),
  );
  for (const { url, log } of first.ready.brokers) {
    expect(url).toMatch(/^tls:\/\/127\.0\.0\.1:\d+$/);
    expect(existsSync(log)).toBe(true);
  }
  const client = await trainer(first.ready);
  await client.createIfNotAlreadyCreated("w", Float32Array.of(1, 2));
  const push = () => client.pushFull("w", Float32Array.of(1, 1), 1, 1, { timeoutMs: HANG_MS });
  const told = (text: string) =>
    vi.waitFor(() => expect(first.running.errors()).toContain(text), WAIT);
  // One broker may go, and the work goes on.
  const [one, two, three] = first.ready.brokers as [BrokerLine, BrokerLine, BrokerLine];
  signalProcess(two.pid, "SIGKILL");
  await told("broker 2 ended by SIGKILL; starting it again");
  await told("2 of 3 brokers run");
  await push();
  await told("broker 2 is back");
  await told("3 of 3 brokers run");
  // Without a majority nothing is stored, and then it is.
  signalProcess(one.pid, "SIGKILL");
  signalProcess(three.pid, "SIGKILL");
  await told("1 of 3 brokers run: nothing can be stored until a majority of them runs");
  await push();
  expect((await client.pullFull("w", { timeoutMs: HANG_MS })).data).toEqual(Float32Array.of(3, 4));
  await client.close();
  await end(first.running);
  for (const { url, routesPort } of first.ready.brokers) {
    expect(await isListening(Number(new URL(url).port))).toBe(false);
    expect(await isListening(routesPort)).toBe(false);
  }

  // The disk of one broker is lost while all are down.
  await rm(two.store, { recursive: true });
  const second = await up(...flags);
  const reader = await trainer(second.ready);
  expect((await reader.pullFull("w", { timeoutMs: HANG_MS })).data).toEqual(Float32Array.of(3, 4));
  await reader.close();
  await end(second.running);

  // A single broker would begin an empty job there.
  const single = await runProcess(["up", "--port", "0", "--store", store, "--job", JOB]);
  expect(single).toMatchObject({ code: 3, stdout: "" });
  expect(single.stderr).toContain("BAD_VALUE");
  expect(single.stderr).toContain("those of 3 brokers");
  expect(existsSync(join(store, "store"))).toBe(false);
});

/** What somebody without a certificate, or a token, who sends `bytes` to a port hears until the connection ends. */
async function strangerAt(port: number, bytes: string, isTls: boolean): Promise<string> {
  const to = { host: "127.0.0.1", port };
  const socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connectSocket(to);
  let heard = "";
  socket.on("error", (error) => {
    heard += error.message;
  });
  socket.on("data", (chunk: Buffer) => {
    heard += chunk.toString();
  });
  socket.write(bytes);
  await new Promise((resolve) => socket.once("close", resolve));
  return heard;
}

/** What a broker says to another one at first. */
const AS_BROKER =
  'CONNECT {"echo":true,"verbose":false,"pedantic":false,"protocol":1,"name":"stranger","cluster":"pserver"}\r\nINFO {"server_id":"NSTRANGER","server_name":"stranger","version":"2.12.15","cluster":"pserver","proto":1,"port":1,"host":"127.0.0.1"}\r\nPING\r\n';

test.each([
  { flags: ["--secure"], isTls: true, refusal: "certificate required" },
  { flags: [], isTls: false, refusal: "Authorization Violation" },
])("a stranger is no broker of the cluster, with $flags", async ({ flags, isTls, refusal }) => {
  const { running, ready } = await up("--shards", "1", ...flags);
  const [{ routesPort } = { routesPort: 0 }] = ready.brokers;
  const heard = await strangerAt(routesPort, AS_BROKER, isTls);
  expect(heard).toContain(refusal);
  expect(heard).not.toContain("PONG");
  await end(running);
});

test("the data of a single broker are not taken for those of a cluster", async () => {
  const single = start(["up", "--port", "0", "--store", store, "--shards", "1", "--json"]);
  await single.firstLine;
  await end(single);
  const args = ["up", "--cluster", "3", "--port", "0", "--store", store];
  const { code, stderr } = await runProcess(args);
  expect(code).toBe(3);
  expect(stderr).toContain("those of a single broker");
  expect(existsSync(join(store, "broker-1"))).toBe(false);
});

test("users of another job are refused", async () => {
  const auth = join(home, "auth");
  expect(await runProcess(["auth", "init", auth, "--job", "other"])).toMatchObject({ code: 0 });
  const args = ["up", "--port", "0", "--store", store, "--job", JOB, "--secure", auth];
  const { code, stderr } = await runProcess(args);
  expect(code).toBe(3);
  expect(stderr).toContain("expected the users of job mnist, as after");
  expect(stderr).toContain("received job other");
});
