// Proves for whom the scripts of set-up become root: who can type a password is asked for one, whatever is
// redirected meanwhile, and nobody else is. The script is the real one that provides brokers, run as a user
// without rights; programs of the test play Go, apt and sudo.
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { packageRoot } from "../../src/broker/index.ts";
import { HANG_MS } from "../support/limits.ts";

const SCRIPTS = ["provide-broker.sh", "as-root.sh", "broker-version.sh"];

/** A user that exists everywhere and may do nothing. */
const NOBODY = 65_534;

/** What the script asks sudo for once Debian's package cannot be had. */
const UPDATE = "apt-get update -q";

let home: string;
beforeEach(async () => {
  // Nobody may read the checkout, which can lie in a directory of its user.
  home = await mkdtemp(join(tmpdir(), "pserver-as-root-"));
  await mkdir(join(home, "bin"));
  for (const name of SCRIPTS) {
    await copyFile(join(packageRoot(), "scripts", name), join(home, name));
  }
  for (const name of ["go", "apt-get", "dpkg-deb"]) await program(name, "exit 1");
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

/** Runs a command as a user without rights, to its end; what sudo was asked for, a line each. */
async function askedBy(file: string, ...args: string[]): Promise<string[]> {
  const isRoot = process.getuid?.() === 0;
  const asNobody = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", file];
  const [command, before] = isRoot ? ["setpriv", asNobody] : [file, []];
  const environment = { PATH: `${join(home, "bin")}:/usr/bin:/bin`, HOME: home, SHELL: "/bin/sh" };
  const options = { cwd: home, env: environment, timeout: HANG_MS };
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(command, [...before, ...args], options, (error, stdout, stderr) => {
      if (error?.killed || error?.syscall !== undefined) reject(error);
      else resolve(stdout + stderr);
    });
    child.stdin?.end();
  });
  expect(output).toContain("setup: that failed; as root run: apt-get update");
  expect(output).toContain("setup: no broker: install Go");
  const asked = await readFile(join(home, "asked"), "utf8");
  return asked.split("\n").slice(0, -1);
}

const provide = "bash provide-broker.sh target";
const atTerminal = (command: string) => askedBy("script", "-qec", command, "/dev/null");

test("a user at a terminal is asked for the password, although the command gets no input", async () => {
  expect(await atTerminal(provide)).toEqual([UPDATE]);
});

test("a job in the background asks at its terminal", async () => {
  expect(await atTerminal(`${provide} </dev/null`)).toEqual([UPDATE]);
});

test("`pserver setup` asks, which reads what the script says", async () => {
  expect(await atTerminal(`${provide} 2>&1 | cat`)).toEqual([UPDATE]);
});

test("without a terminal nobody is asked", async () => {
  expect(await askedBy("bash", "-c", provide)).toEqual([`-n ${UPDATE}`]);
});
