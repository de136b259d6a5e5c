// Proves, with the compiled command on a real server, that `pserver ui` shows a job from its own process: it finds the
// broker as other commands do, opens the address by the desktop's program only where there is a display, and tells a
// broker that cannot be reached as other commands do. Under --secure the page, the API and metrics work with the users
// that were made: the server's own, the observer, who sees the job and not its past, and the admin.
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { type Running, run, start } from "../../cli/spawn-command.ts";
import { HANG_MS } from "../../support/limits.ts";

const WAIT = { timeout: HANG_MS, interval: 100 };

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-ui-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function stop({ child, finished }: Running): Promise<void> {
  child.kill("SIGTERM");
  expect((await finished).code).toBe(0);
}

async function up(...args: string[]): Promise<{ ready: Record<string, string>; command: Running }> {
  const store = join(home, "store");
  const command = start([
    "up",
    "--port",
    "0",
    "--store",
    store,
    "--shards",
    "2",
    "--json",
    ...args,
  ]);
  return { ready: JSON.parse(await command.firstLine), command };
}

/** The token of servers that are given one. */
const BEARER = { Authorization: "Bearer secret" };

async function json(url: string): Promise<{ status: number; value: unknown }> {
  const response = await fetch(url, { headers: BEARER });
  return { status: response.status, value: await response.json() };
}

/** Takes the first events of a job's stream up to one of a kind, and returns its data. */
async function firstEvent(http: string, kind: string): Promise<unknown> {
  const stopped = new AbortController();
  const options = { headers: BEARER, signal: stopped.signal };
  const response = await fetch(`${http}/api/jobs/default/live`, options);
  let text = "";
  try {
    for await (const part of response.body ?? []) {
      text += Buffer.from(part).toString("utf8");
      const data = new RegExp(`^event: ${kind}\\ndata: (.*)\\n\\n`, "m").exec(text)?.[1];
      if (data !== undefined) return JSON.parse(data);
    }
  } finally {
    stopped.abort();
  }
  throw new Error(`the stream has ended without ${kind}: ${text}`);
}

test("shows the job of a running server, and opens the address where there is a display", async () => {
  const { ready, command } = await up("--http", "off");
  const token = (await readFile(String(ready["tokenFile"]), "utf8")).trim();
  const opened = join(home, "opened");
  const opener = join(home, "xdg-open");
  await writeFile(opener, `#!/bin/sh\nprintf '%s' "$1" >${opened}\n`);
  await chmod(opener, 0o755);
  const environment = {
    PSERVER_URL: String(ready["url"]),
    NATS_TOKEN: token,
    PATH: `${home}${delimiter}${process.env["PATH"]}`,
  };
  const shown = start(["ui", "--json"], { environment: { ...environment, DISPLAY: ":0" } });
  const { url, job } = JSON.parse(await shown.firstLine);
  expect(job).toBe("default");
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await vi.waitFor(async () => expect(await readFile(opened, "utf8")).toBe(url), WAIT);
  expect((await json(`${url}/api`)).value).toMatchObject({ job: "default", canChange: false });
  expect((await json(`${url}/api/jobs/default`)).value).toMatchObject({ job: "default" });
  expect((await fetch(url)).headers.get("content-type")).toContain("text/html");
  // It has no hosts of which it could tell.
  expect((await fetch(`${url}/metrics`)).status).toBe(404);
  await stop(shown);
  await rm(opened);

  const told = start(["ui"], { environment: { ...environment, DISPLAY: "", WAYLAND_DISPLAY: "" } });
  expect(await told.firstLine).toMatch(/^job default is shown at http:\/\/127\.0\.0\.1:\d+$/);
  await vi.waitFor(() => expect(told.errors()).toContain("there is no display here"), WAIT);
  await stop(told);
  const quiet = start(["ui", "--no-open"], { environment: { ...environment, DISPLAY: ":0" } });
  await quiet.firstLine;
  await stop(quiet);
  await expect(readFile(opened, "utf8")).rejects.toThrow("ENOENT");
  await stop(command);
});

test("a broker that cannot be reached ends it, as it ends other commands", async () => {
  const { code, stderr } = await run(["ui", "--url", "nats://127.0.0.1:1", "--no-open", "--json"]);
  expect([code, JSON.parse(stderr).error.code]).toEqual([2, "NO_BROKER"]);
});

test("under --secure, page, API and metrics work, and each user sees what it may", async () => {
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, "secret");
  const { ready, command } = await up("--secure", "--http", "0", "--http-token", tokenFile);
  const auth = join(home, "store", "auth");
  const tlsCa = join(auth, "ca.pem");
  const client = await connect({
    ...{ url: String(ready["url"]), tlsCa, nkey: join(auth, "trainers", "trainer-1.nk") },
    ...{ job: "default", trainer: "trainer-1", timeoutMs: HANG_MS },
  });
  onTestFinished(() => client.close());
  await client.createIfNotAlreadyCreated("w", Float32Array.of(1, 2));
  await client.note({ loss: 1 });

  const http = String(ready["http"]);
  expect((await json(`${http}/api/jobs`)).value).toMatchObject([{ job: "default" }]);
  const own = await json(`${http}/api/jobs/default`);
  expect(own.value).toMatchObject({ parameters: { count: 1 }, trainers: ["trainer-1"] });
  expect((await json(`${http}/api/jobs/default/last?limit=9`)).status).toBe(200);
  expect((await json(`${http}/api/jobs/default/model`)).value).toMatchObject({
    parameters: [{ name: "w" }],
  });
  expect(await firstEvent(http, "status")).toMatchObject({ job: "default" });
  const metrics = await fetch(`${http}/metrics`, { headers: BEARER });
  expect(await metrics.text()).toContain("pserver_trainers{");
  const rewind = await fetch(`${http}/api/jobs/default/rewind`, {
    method: "POST",
    headers: { ...BEARER, "Content-Type": "application/json" },
    body: JSON.stringify({ to: "now", confirm: "default" }),
  });
  expect(await rewind.text()).toContain('event: end\ndata: {"exitCode":0');
  expect((await fetch(`${http}/readyz`)).status).toBe(200);

  const as = (user: string, ...args: string[]): Running =>
    start(
      [
        ...["ui", "--no-open", "--json", "--url", String(ready["url"]), "--tlsca", tlsCa],
        ...["--nkey", join(auth, `${user}.nk`), ...args],
      ],
      {},
    );
  const observer = as("observer");
  const { url } = JSON.parse(await observer.firstLine);
  expect(await firstEvent(url, "status")).toMatchObject({ trainers: ["trainer-1"] });
  expect(await firstEvent(url, "limited")).toMatchObject({ code: "DENIED" });
  const past = await json(`${url}/api/jobs/default/last`);
  expect(past.value).toMatchObject({ error: { code: "DENIED" } });
  await stop(observer);

  const admin = as("admin", "--trainer", "admin");
  const { url: adminUrl } = JSON.parse(await admin.firstLine);
  expect((await json(`${adminUrl}/api/jobs/default`)).status).toBe(200);
  expect((await json(`${adminUrl}/api/jobs/default/last`)).status).toBe(200);
  await stop(admin);
  await client.close();
  await stop(command);
});
