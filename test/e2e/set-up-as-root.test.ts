// Proves for whom the scripts of set-up become root: who can type a password is asked for one, whatever is
// redirected meanwhile, and nobody else is. The script is the real one that provides brokers, run as a user
// without rights, where Python's venv is missing; programs of the test play apt and sudo.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { HANG_MS } from "../support/limits.ts";

const SCRIPTS = [
  ...["provide-broker.sh", "as-root.sh", "broker-version.sh"],
  ...["debian-packages.sh", "find-python.sh", "python-modules.sh"],
];

/** A user that exists everywhere and may do nothing. */
const NOBODY = 65_534;

/** What the script asks sudo for: to install, and once the package cannot be had, to update the lists before. */
const ASKED = ["python3-venv", "update", "python3-venv"];

let home: string;
beforeEach(async () => {
  // Nobody may read the checkout, which can lie in a directory of its user.
  home = await mkdtemp(join(tmpdir(), "pserver-as-root-"));
  await mkdir(join(home, "bin"));
  for (const name of SCRIPTS) {
    await copyFile(join(packageRoot(), "scripts", name), join(home, name));
  }
  for (const name of ["go", "apt-get"]) await program(name, "exit 1");
  await program("sudo", `echo "$*" >>${home}/asked; exit 1`);
  await writeFile(join(home, "asked"), "");
  await chmod(join(home, "asked"), 0o666);
  await chmod(home, 0o777);
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** A program of this name that others find first. */
async function program(name: string, lines: string): Promise<void> {
  const path = join(home, "bin", name);
  await writeFile(path, `#!/bin/sh\n${lines}\n`);
  await chmod(path, 0o755);
}

/** Runs a command as a user without rights, to its end; how sudo was asked, and what for, the last word of each. */
async function askedBy(
  file: string,
  ...args: string[]
): Promise<{ readonly isQuiet: boolean[]; readonly words: (string | undefined)[] }> {
  const isRoot = process.getuid?.() === 0;
  const asNobody = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", file];
  const [command, before] = isRoot ? ["setpriv", asNobody] : [file, []];
  const environment = {
    PATH: `${join(home, "bin")}:/usr/bin:/bin`,
    HOME: home,
    SHELL: "/bin/sh",
    PSERVER_PYTHON: "/nowhere",
  };
  const options = { cwd: home, env: environment, timeout: HANG_MS };
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(command, [...before, ...args], options, (error, stdout, stderr) => {
      if (error?.killed || error?.syscall !== undefined) reject(error);
      else resolve(stdout + stderr);
    });
    child.stdin?.end();
  });
  expect(output).toContain("setup: no broker: install Go");
  const asked = (await readFile(join(home, "asked"), "utf8")).split("\n").slice(0, -1);
  return {
    isQuiet: asked.map((line) => line.startsWith("-n ")),
    words: asked.map((line) => line.split(" ").at(-1)),
  };
}

const ALOUD = { isQuiet: [false, false, false], words: ASKED };

const provide = "bash provide-broker.sh target";
const atTerminal = (command: string) => askedBy("script", "-qec", command, "/dev/null");

// Elsewhere nothing can be installed.
describe.skipIf(!existsSync("/var/lib/apt"))("on Debian", () => {
  test("a user at a terminal is asked for the password, although the command gets no input", async () => {
    expect(await atTerminal(provide)).toEqual(ALOUD);
  });

  test("a job in the background asks at its terminal", async () => {
    expect(await atTerminal(`${provide} </dev/null`)).toEqual(ALOUD);
  });

  test("`pserver setup` asks, which reads what the script says", async () => {
    expect(await atTerminal(`${provide} 2>&1 | cat`)).toEqual(ALOUD);
  });

  test("without a terminal nobody is asked", async () => {
    expect(await askedBy("bash", "-c", provide)).toEqual({
      isQuiet: [true, true, true],
      words: ASKED,
    });
  });
});
