// Proves who is let in by a broker that `pserver up` or a local `run` starts: programs of the same user, in
// TypeScript, C and by the commands, without naming a token; nobody else, unless `--no-token` says so.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { connect } from "../../src/client/index.ts";
import { type Running, runProcess, start } from "../cli/spawn-command.ts";
import { HANG_MS } from "../support/limits.ts";

const run = promisify(execFile);

interface Ready {
  readonly url: string;
  readonly tokenFile?: string;
}

/** Another user of the machine: one whose files are elsewhere. */
const STRANGER = { XDG_STATE_HOME: "/nonexistent" };

async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "pserver-token-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function up(cwd: string, ...flags: string[]): Promise<[Ready, Running]> {
  const running = start(["up", "--port", "0", "--json", ...flags], { cwd });
  return [JSON.parse(await running.firstLine) as Ready, running];
}

async function stop({ child, finished }: Running): Promise<void> {
  child.kill("SIGTERM");
  await finished;
}

test("up lets this user's programs in, and nobody else", async () => {
  const cwd = await directory();
  const [{ url, tokenFile = "" }, running] = await up(cwd);
  expect((await stat(tokenFile)).mode & 0o777).toBe(0o600);

  const client = await connect({ url, job: "default", timeoutMs: HANG_MS });
  await client.createIfNotAlreadyCreated("w", Float32Array.of(1, 2));
  await client.close();
  const status = await runProcess(["status", "--url", url]);
  expect(status).toMatchObject({ code: 0, stderr: "" });

  const refused = await runProcess(["get", "w", "--url", url], { environment: STRANGER });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("DENIED");
  const token = (await readFile(tokenFile, "utf8")).trim();
  const told = { ...STRANGER, NATS_TOKEN: token };
  expect(await runProcess(["get", "w", "--url", url], { environment: told })).toMatchObject({
    code: 0,
  });

  // The token is the same after a restart, so that clients which are connected come back.
  await stop(running);
  const [again, restarted] = await up(cwd);
  expect((await readFile(again.tokenFile ?? "", "utf8")).trim()).toBe(token);
  await stop(restarted);
});

test("a trainer in C finds the token, and says whose file it refuses", async () => {
  const cwd = await directory();
  const [{ url }] = await up(cwd);
  const lib = join(packageRoot(), "build/lib");
  const program = join(cwd, "minimal");
  const source = join(packageRoot(), "examples/c/minimal.c");
  const flags = ["-I", join(packageRoot(), "include"), "-L", lib, "-lpserver"];
  await run("gcc", [source, ...flags, `-Wl,-rpath,${lib}`, "-o", program]);
  const env = { ...process.env, PSERVER_URL: url };
  expect((await run(program, [], { env })).stdout).toMatch(/^y = 1\.\d+ x/);
  const stranger = run(program, [], { env: { ...env, ...STRANGER } });
  await expect(stranger).rejects.toThrow("DENIED");
});

test("--no-token lets everybody in", async () => {
  const [ready] = await up(await directory(), "--no-token");
  expect(ready.tokenFile).toBeUndefined();
  const { url } = ready;
  expect(await runProcess(["status", "--url", url], { environment: STRANGER })).toMatchObject({
    code: 0,
  });
});

test.each([[[]], [["--no-token"]]])(
  "a local run %j gives its trainers what they need",
  async (flags) => {
    const cwd = await directory();
    const shown = 'test -n "$NATS_TOKEN" && echo token || echo none';
    const { code, stdout } = await runProcess(["run", ...flags, "--", "sh", "-c", shown], { cwd });
    expect(code).toBe(0);
    expect(stdout).toContain(flags.length === 0 ? "token" : "none");
  },
);
