// Proves what needs no broker: help names every command with examples, wrong command lines end
// with 128 and say what was expected and received, on stderr, and completion knows all flags.
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { runCli } from "../../src/cli/run-cli.ts";

const COMMANDS = [
  ...[
    "up",
    "setup",
    "auth",
    "host",
    "run",
    "status",
    "ui",
    "ls",
    "get",
    "set",
    "save",
    "load",
    "archive",
    "record",
    "jobs",
    "remove",
    "recover",
    "replay",
    "doctor",
    "completion",
  ],
];

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const stdin = new PassThrough();
  const code = await runCli(args, { stdin, stdout, stderr, environment: {}, signal });
  return { code, out: String(stdout.read() ?? ""), err: String(stderr.read() ?? "") };
}

describe("help", () => {
  test("names every command and exit code", async () => {
    const { code, out, err } = await run("--help");
    expect([code, err]).toEqual([0, ""]);
    for (const command of COMMANDS) expect(out).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(out).toMatch(/^ {2}128 {2}the command line is wrong$/m);
  });

  test.each(COMMANDS)("of %s has examples", async (command) => {
    const { code, out } = await run("help", command);
    expect(code).toBe(0);
    expect(out).toContain(`Usage: pserver ${command}`);
    expect(out).toMatch(new RegExp(`^Examples:\\n.*pserver ${command}`, "ms"));
  });

  test("goes to stderr where a command is missing", async () => {
    const { code, out, err } = await run();
    expect([code, out]).toEqual([128, ""]);
    expect(err).toContain("Usage: pserver");
  });
});

test("prints the version", async () => {
  expect(await run("--version")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+/),
  });
});

describe("a wrong command line", () => {
  test.each([
    [["up", "--port", "70000"], 'a whole number from 0 to 65535; received "70000"'],
    [["up", "--hosts", "0"], 'a whole number from 1 to 64; received "0"'],
    [["up", "--shards", "257"], 'a whole number from 1 to 256; received "257"'],
    [["up", "--trainers", "2"], "expected --sync sync or ssp with --trainers; received no --sync"],
    [["host", "--sync", "sync"], "--sync sync: expected --trainers; received none"],
    [["up", "--sync", "ssp", "--trainers", "2"], "--sync ssp: expected --staleness"],
    [["up", "--sync", "async", "--backups", "2"], "expected no other flag; received --backups"],
    [
      ["up", "--sync", "ssp", "--trainers", "2", "--staleness", "1", "--reduce", "sum"],
      "expected only --trainers and --staleness; received --reduce",
    ],
    [
      ["up", "--sync", "sync", "--trainers", "4096", "--backups", "1"],
      "at most 4096 trainers and backups together",
    ],
    [["up", "--trainers", "0"], 'a whole number from 1 to 4096; received "0"'],
    [["up", "--journal-limit", "15MiB"], 'a size of 16MiB or more; received "15MiB"'],
    [["up", "--retain", "much"], 'a size such as 1048576, 512MB or 1GiB; received "much"'],
    [["up", "--journal", "disk"], "Allowed choices are file, memory."],
    [["status", "--timeout", "soon"], 'received "soon"'],
    [["status", "--job", "a b"], 'received "a b"'],
    [["load", "x.npz", "--learning-rate", "fast"], 'a finite number; received "fast"'],
    [["completion", "tcsh"], "Allowed choices are bash, zsh, fish."],
    [["get"], "missing required argument 'name'"],
    [["get", "w", "v"], "too many arguments"],
    [["status", "--prot", "1"], "unknown option '--prot'"],
    [["stauts"], "unknown command 'stauts'"],
  ])("%j", async (args, text) => {
    const { code, out, err } = await run(...args);
    expect([code, out]).toEqual([128, ""]);
    expect(err).toContain(text);
    expect(err).toMatch(/^pserver: /);
    expect(err).toContain('hint: "pserver help COMMAND"');
  });

  test.each([
    [["host", "--etcd", "http://alice:pass/word@etcd:2379"]],
    [["up", "--etcd", "http://alice:pass'word,x@etcd:2379"]],
    [["host", "--advertise", "nats://alice:pass/word@h,nats://h2"]],
    [["status", "--url", "nats://alice:pass/word@h"]],
    [["status", "--url", "nats://alice:pass,word@h", "--json"]],
    [["status", "--pasword=pass@word"]],
  ])("%j is told without the password", async (args) => {
    const { code, out, err } = await run(...args);
    expect(code).toBe(args.includes("--url") ? 3 : 128);
    expect(out + err).not.toMatch(/pass['@,/]|word@|alice/);
    expect(err).toMatch(/received|unknown option '--pasword'/);
  });

  test("is JSON where that is asked for", async () => {
    const { code, err } = await run("up", "--port", "x", "--json");
    expect(code).toBe(128);
    expect(JSON.parse(err)).toMatchObject({
      error: { code: "BAD_VALUE", message: expect.stringContaining('received "x"') },
    });
  });
});

test("-j asks for JSON, too, and what comes after -- does not", async () => {
  const { err } = await run("up", "--port", "x", "-j");
  expect(JSON.parse(err)).toMatchObject({ error: { code: "BAD_VALUE" } });
  expect((await run("stauts", "--", "--json")).err).toMatch(/^pserver: unknown command/);
});

test("an error of a command that serves begins with the time", async () => {
  const { err } = await run("host", "--url", "nats://alice:pass/word@h");
  expect(err).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z pserver: /);
});

describe("completion", () => {
  test.each(["bash", "zsh", "fish"])("for %s knows commands, flags and choices", async (shell) => {
    const { code, out } = await run("completion", shell);
    expect(code).toBe(0);
    for (const word of [...COMMANDS, "journal", "memory", "timeout"]) expect(out).toContain(word);
  });
});

test("only commands that serve ask to be stopped in order without a reader", async () => {
  const asks = async (...args: string[]): Promise<boolean> => {
    let asked = false;
    const onServer = (): void => {
      asked = true;
    };
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const { signal } = new AbortController();
    await runCli(args, { stdin, stdout, stderr, environment: {}, signal, onServer });
    return asked;
  };
  expect(await asks("run", "--dry-run", "--", "sh")).toBe(true);
  expect(await asks("completion", "bash")).toBe(false);
});
