// Proves what `pserver auth` says about the directory that it makes or adds to, and which calls it refuses.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runCli } from "../../../src/cli/run-cli.ts";

let home: string;
let directory: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "pserver-auth-command-"));
  directory = join(home, "auth");
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function auth(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const code = await runCli(["auth", ...args], { stdin, stdout, stderr, environment: {}, signal });
  return { code, out: String(stdout.read() ?? ""), err: String(stderr.read() ?? "") };
}

test("init tells where each user's variables are, and add tells of all", async () => {
  const first = await auth("init", directory, "--job", "mnist");
  expect([first.code, first.err]).toEqual([0, ""]);
  expect(first.out).toContain(`trainer-1: ${join(directory, "trainers", "trainer-1.env")}`);
  expect(first.out).toContain(`observer: ${join(directory, "observer.env")}`);
  expect(first.out).toContain(`pserver up --secure ${directory} --job mnist`);
  const added = await auth("add", directory, "--trainer", "b", "--trainer", "c", "--json");
  expect(JSON.parse(added.out)).toEqual({
    directory,
    jobs: ["mnist"],
    trainers: ["trainer-1", "b", "c"],
    configFile: join(directory, "broker.conf"),
    authorityFile: join(directory, "ca.pem"),
  });
});

test("many trainers are counted, not listed", async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `t${index}`);
  const { code, out } = await auth("init", directory, ...ids.flatMap((id) => ["--trainer", id]));
  expect(code).toBe(0);
  expect(out.split("\n").length).toBeLessThan(12);
  expect(out).toContain("37 more trainers");
});

test.each([
  { args: ["add"], code: 3, says: "pserver auth init" },
  { args: ["init", "--name", "a b"], code: 3, says: "a host name or an IP address" },
  { args: ["init", "--trainer", "admin"], code: 3, says: "one that no user has" },
  { args: ["other"], code: 128, says: "init, add" },
])("$args is refused", async ({ args: [action = "", ...flags], code, says }) => {
  const ended = await auth(action, directory, ...flags);
  expect([ended.code, ended.out]).toEqual([code, ""]);
  expect(ended.err).toContain(says);
  expect(await readdir(home)).toEqual([]);
});

test("add gives all users another job, which is only taken from the command line", async () => {
  await auth("init", directory, "--job", "mnist");
  const added = await auth("add", directory, "--job", "mnist-2", "--json");
  expect(JSON.parse(added.out)).toMatchObject({
    jobs: ["mnist", "mnist-2"],
    trainers: ["trainer-1"],
  });
  const both = await auth("add", directory, "--trainer", "b", "--json");
  expect(JSON.parse(both.out)).toMatchObject({
    jobs: ["mnist", "mnist-2"],
    trainers: ["trainer-1", "b"],
  });
  expect(await auth("add", directory, "--job", "mnist")).toMatchObject({ code: 3 });
});

test("add needs a trainer, and one who is new, or a job", async () => {
  await auth("init", directory);
  expect(await auth("add", directory)).toMatchObject({
    code: 3,
    err: expect.stringContaining("--trainer ID, once or more, or --job NAME"),
  });
  expect(await auth("add", directory, "--trainer", "trainer-1")).toMatchObject({ code: 3 });
});
