// Proves that a wrong command line of `pserver run` or `legion` ends with one line that says what was expected, the
// documented exit code, and nothing started: no directory, no process.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runLegion } from "../../../src/cli/run/run-legion.ts";
import { runCli } from "../../../src/cli/run-cli.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "pserver-bad-run-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function answer(
  program: typeof runCli,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = { PATH: "/usr/bin:/bin" },
): Promise<{ code: number; out: string; lines: string[] }> {
  const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const { signal } = new AbortController();
  const code = await program(args, { stdin, stdout, stderr, environment, signal });
  const lines = String(stderr.read() ?? "")
    .trim()
    .split("\n");
  return { code, out: String(stdout.read() ?? ""), lines };
}

describe("pserver run", () => {
  test.each<[args: string[], code: number, text: string]>([
    [[], 128, "missing required argument 'command'"],
    [["--"], 128, "missing required argument 'command'"],
    [["-n", "0", "--", "sh"], 128, 'a whole number from 1 to 4096; received "0"'],
    [["-n", "two", "--", "sh"], 128, 'received "two"'],
    [["--launcher", "moab", "--", "sh"], 128, "Allowed choices are local, ssh, slurm, pbs."],
    [
      ["--walltime", "12h", "--", "sh"],
      128,
      'a wall time such as 12:00:00 or 1-12:00:00; received "12h"',
    ],
    [["--walltime", "0:00:00", "--", "sh"], 128, "a wall time"],
    [["--walltime", "1:60:00", "--", "sh"], 128, "a wall time"],
    [["--env", "SECRET", "--", "sh"], 128, 'expected NAME=VALUE or NAME-; received "SECRET"'],
    [["--env", "1=secret", "--", "sh"], 128, 'expected NAME=VALUE or NAME-; received "1=…"'],
    [["--env", "1-", "--", "sh"], 128, 'expected NAME=VALUE or NAME-; received "1-"'],
    [
      ["--torch-env", "--devices", "gpu0", "--", "sh"],
      3,
      "--devices: expected no --torch-env with it, where LOCAL_RANK selects the device",
    ],
    [
      ["-n", "3", "--torch-env", "--launcher", "slurm", "--max-simultaneous", "2", "--", "sh"],
      3,
      "--max-simultaneous: expected 3 with --torch-env, whose trainers wait for each other; received 2",
    ],
    [["--restarts", "-1", "--", "sh"], 128, "a whole number from 0 to 1000"],
    [["sh", "-c", "true"], 128, "unknown option '-c'"],
    [["--sync", "ssp", "--", "sh"], 128, "--sync ssp: expected --staleness; received none"],
    [
      ["-n", "2", "--sync", "diloco", "--", "no-such"],
      3,
      'a program on the PATH; received "no-such"',
    ],
    [["--save", "m.xyz", "--", "sh"], 3, 'or in / for a directory; received "m.xyz"'],
    [["--", "no-such-program"], 3, 'a program on the PATH; received "no-such-program"'],
    [["--", "./no-such-program"], 3, 'an executable file; received "./no-such-program"'],
    [["--", "/etc"], 3, 'an executable file; received "/etc"'],
    [["--", "sh", "no-such-script"], 3, 'a script that exists; received "no-such-script"'],
    [
      ["--launcher", "slurm", "--", "sh"],
      3,
      "--launcher slurm: expected sbatch on the PATH; received none",
    ],
    [
      ["--launcher", "pbs", "--", "sh"],
      3,
      "--launcher pbs: expected qsub on the PATH; received none",
    ],
    [["--launcher", "ssh", "--", "sh"], 3, "--machines: expected names with commas, or a file"],
    [
      ["--launcher", "ssh", "--machines", ",", "--", "sh"],
      3,
      "--machines: expected at least one machine",
    ],
    [
      ["--launcher", "ssh", "--machines", "-oProxyCommand=x", "--", "sh"],
      3,
      "--machines: expected names of machines",
    ],
    [
      ["--launcher", "ssh", "--machines", "/no/file", "--", "sh"],
      3,
      "--machines: expected a file that exists",
    ],
    [
      ["--machines", "a", "--", "sh"],
      3,
      "--machines: expected another --launcher with it; received local",
    ],
    [
      ["--launcher", "slurm", "--account", "a b", "--dry-run", "--", "sh"],
      3,
      "--account: expected letters",
    ],
    [
      ["--launcher", "slurm", "--queue", "a\n#SBATCH -x", "--dry-run", "--", "sh"],
      3,
      "--queue: expected letters",
    ],
    [
      ["--launcher", "slurm", "--devices", "gpu0", "--", "sh"],
      3,
      "--devices: expected another --launcher",
    ],
    [
      ["--launcher", "slurm", "--advertise", "a:1:b;c", "--dry-run", "--", "sh"],
      3,
      "--advertise: expected a name",
    ],
    [
      ["-n", "2", "--devices", "gpu0", "--", "sh"],
      3,
      "one device for each of 2 trainers; received 1",
    ],
    [
      ["--url", "nats://h", "--hosts", "2", "--", "sh"],
      3,
      "--hosts: expected no --url with it; received both",
    ],
    [["--url", "nats://h", "--shards", "2", "--", "sh"], 3, "--shards: expected no --url with it"],
    [["--url", "http://h", "--", "sh"], 3, "broker address: expected nats://"],
  ])("%j", async (args, code, text) => {
    const { lines, out, ...ended } = await answer(runCli, [
      "run",
      "--store",
      join(home, "s"),
      ...args,
    ]);
    expect(lines[0]).toContain(text);
    expect(lines[0]).toMatch(/^(?:\S+Z )?pserver: /);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect([ended.code, out]).toEqual([code, ""]);
    expect(readdirSync(home)).toEqual([]);
  });

  test("flags behind -- are the trainer's", async () => {
    const { code, lines } = await answer(runCli, [
      "run",
      "--",
      "no-such-program",
      "--json",
      "--help",
    ]);
    expect([code, lines.length]).toEqual([3, 1]);
    expect(lines[0]).toContain("pserver: BAD_VALUE: command: ");
  });

  test.each([["--durable"], ["--broker-memory", "1GiB"]])(
    "PSERVER_URL is a server that is there, which takes no %s",
    async (...flags) => {
      const environment = { PATH: "/usr/bin:/bin", PSERVER_URL: "nats://h" };
      const { code, lines } = await answer(runCli, ["run", ...flags, "--", "sh"], environment);
      expect([code, lines.length]).toEqual([3, 1]);
      expect(lines[0]).toContain(`${flags[0]}: expected no PSERVER_URL with it`);
    },
  );

  test.each(["up", "run"])("%s gives a broker no less memory than it needs", async (command) => {
    const { code, lines } = await answer(runCli, [command, "--broker-memory", "127MiB"]);
    expect(code).toBe(128);
    expect(lines.join()).toContain('expected a size of 128MiB or more; received "127MiB"');
  });
});

describe("legion", () => {
  test.each<[args: string[], code: number, text: string]>([
    [[], 128, "legion: missing required argument 'script'"],
    [["SCRIPT", "--instances", "0"], 128, 'received "0"'],
    [["SCRIPT", "--instances", "1", "--walltime", "noon"], 128, 'received "noon"'],
    [["SCRIPT", "--instances", "1", "--launcher", "moab"], 128, "Allowed choices are"],
    [["SCRIPT"], 3, "--instances: expected a number; received none"],
    [
      ["SCRIPT", "--instances", "1", "--debug_devices", "gpu0"],
      3,
      "--debug_devices: expected --debug with it",
    ],
    [
      ["SCRIPT", "--instances", "1", "--debug_pycharm"],
      3,
      "--debug_pycharm: expected --debug with it",
    ],
    [
      ["SCRIPT", "--debug", "--instances", "2", "--debug_devices", "gpu0"],
      3,
      "one for each of 2; received 1",
    ],
    [["no-such.py", "--debug"], 3, 'a script that exists; received "no-such.py"'],
    [["no-such", "--debug"], 3, 'an executable file; received "./no-such"'],
    [
      ["SCRIPT", "--instances", "1", "--launcher", "slurm"],
      3,
      "expected sbatch on the PATH; received none",
    ],
  ])("%j", async (args, code, text) => {
    const script = join(home, "train.py");
    writeFileSync(script, "");
    const given = args.map((arg) => (arg === "SCRIPT" ? script : arg));
    const ended = await answer(runLegion, given);
    expect(ended.lines.join("\n")).toContain(text);
    expect([ended.code, ended.out]).toEqual([code, ""]);
    expect(readdirSync(home)).toEqual(["train.py"]);
  });

  test("prints its help", async () => {
    const { code, out } = await answer(runLegion, ["--help"]);
    expect(code).toBe(0);
    for (const flag of [
      "instances",
      "walltime",
      "debug",
      "debug_devices",
      "allocation",
      "job_name",
      "user_script_args",
      "log_level",
      "max_simultaneous_instances",
      "want_helios_k80",
    ]) {
      expect(out).toContain(`--${flag}`);
    }
  });
});
