// Proves `--launcher ssh` with a program that plays ssh: it runs what it is given with the login shell's quoting and
// without our environment, and is a connection that can break. Trainers on three machines in turn reach the
// server with its token alone, and end with their connection.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { start } from "../../cli/spawn-command.ts";
import { HANG_MS } from "../../support/limits.ts";
import { makeRunDirectory, type RunDirectory } from "../../support/run-command.ts";
import { signalGroup } from "../../support/signals.ts";

let directory: RunDirectory;
beforeEach(async () => {
  directory = await makeRunDirectory();
  // As sshd does: another environment, another directory, one command line for the login shell.
  await directory.program(
    "ssh",
    `while [ "$1" != "\${1#-}" ]; do [ "$1" = -o ] && shift; shift; done
     machine=$1; shift
     echo "$machine" >>${directory.path}/connections
     echo $$ >${directory.path}/pids/ssh-$machine-$$
     case $machine in broken) echo "no route to $machine" >&2; exit 255 ;; esac
     cd / && exec env -i HOME=/nowhere PATH="$PATH" MACHINE="$machine" sh -c "$*"`,
  );
  return () => directory.remove();
});

const launch = (...args: string[]): ReturnType<typeof start> =>
  start(["run", "--shards", "1", "--launcher", "ssh", "--advertise", "127.0.0.1", ...args], {
    cwd: directory.path,
    environment: { PATH: `${join(directory.path, "bin")}:${process.env["PATH"]}` },
  });

test("trainers run on the machines in turn, in the same directory, with all that they need", async () => {
  const script = await directory.script(
    "train.mjs",
    `const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
     await ps.createIfNotAlreadyCreated("w", new Float32Array(2));
     await ps.close();
     // The server takes nobody without the token.
     const { NATS_TOKEN: token } = process.env;
     delete process.env.NATS_TOKEN;
     const refused = await connect({ job, trainer, timeoutMs: 5000 }).catch((error) => error.code);
     const { MACHINE, LOCAL_RANK, WORLD_SIZE, MINE } = process.env;
     console.log(JSON.stringify([MACHINE, LOCAL_RANK, WORLD_SIZE, MINE, process.cwd(), token.length > 40, refused, ...process.argv.slice(2)]));`,
  );
  const odd = ["it's", "a\nb", '$HOME `x` \\ " * !', "", "-n"];
  const mine = "two\nlines and 'quotes'";
  await writeFile(join(directory.path, "machines"), "a # the first\n\nb\nuser@c\n");
  const { code, stdout, stderr } = await launch(
    ...["-n", "4", "--machines", join(directory.path, "machines"), "--env", `MINE=${mine}`],
    ...["--save", "model.npz", "--", process.execPath, script, ...odd],
  ).finished;
  expect(stderr).not.toContain("pserver:");
  expect(code).toBe(0);
  const told = (rank: number, machine: string, localRank: string): string =>
    `[${rank}] ${JSON.stringify([machine, localRank, "4", mine, directory.path, true, "DENIED", ...odd])}`;
  expect(stdout.split("\n").sort()).toEqual(
    ["", told(0, "a", "0"), told(1, "b", "0"), told(2, "user@c", "0"), told(3, "a", "1")].sort(),
  );
  expect(await readdir(directory.path)).toContain("model.npz");
  await directory.untilGone();
});

test("a machine that cannot be reached is tried again, then all is stopped", async () => {
  const script = await directory.script("train.mjs", "setInterval(() => {}, 1000);");
  const { code, stderr } = await launch(
    ...["-n", "2", "--machines", "a,broken", "--restarts", "1", "--", process.execPath, script],
  ).finished;
  expect(stderr).toContain("[1] no route to broken");
  expect(stderr).toContain("trainer-1 on broken ended with exit code 255");
  expect(code).toBe(255);
  const connections = (await readFile(join(directory.path, "connections"), "utf8")).trim();
  expect(connections.split("\n").sort()).toEqual(["a", "broken", "broken"]);
  await directory.untilGone();
});

test.each(["Ctrl-C", "the death of the launcher"])("%s ends what runs there", async (end) => {
  const script = await directory.script(
    "train.mjs",
    `import { spawn } from "node:child_process";
     process.on("SIGINT", () => { console.log("saw SIGINT"); process.exit(0); });
     note("child-of-" + RANK, spawn("sleep", ["3600"], { stdio: "ignore" }).pid);
     setInterval(() => {}, 1000);`,
  );
  const running = launch("-n", "2", "--machines", "a,b", "--", process.execPath, script);
  await directory.untilNoted(2, /^child/);
  running.child.kill(end === "Ctrl-C" ? "SIGINT" : "SIGKILL");
  const { code, stdout } = await running.finished;
  if (end === "Ctrl-C") {
    expect(code).toBe(EXIT.interrupted);
    expect(stdout.split("\n").sort()).toEqual(["", "[0] saw SIGINT", "[1] saw SIGINT"]);
  }
  await directory.untilGone();
});

test("a connection that breaks ends what runs there, and the trainer comes back", async () => {
  const script = await directory.script(
    "train.mjs",
    `import { existsSync } from "node:fs";
     if (existsSync("again")) process.exit(0);
     writeFileSync("again", "");
     note("first", process.pid);
     setInterval(() => {}, 1000);`,
  );
  // A connection that is a process of its own between us and what runs there.
  await directory.program(
    "ssh",
    `while [ "$1" != "\${1#-}" ]; do [ "$1" = -o ] && shift; shift; done
     shift
     echo $$ >${directory.path}/pids/ssh-$$
     mkfifo ${directory.path}/line-$$; exec 3<&0
     (cd / && exec setsid -w sh -c "$*") <${directory.path}/line-$$ & remote=$!
     cat <&3 >${directory.path}/line-$$ & wait "$remote"; code=$?
     kill $!; exit "$code"`,
  );
  const running = launch("--machines", "a", "--", process.execPath, script);
  await directory.untilNoted(1, /^first/);
  const [connection] = await directory.noted(/^ssh/);
  signalGroup(connection, "SIGKILL");
  const { code, stderr } = await running.finished;
  expect(stderr).toContain(
    "trainer-0 on a ended with exit code 137 (SIGKILL, which the kernel sends when memory has run out); starting it again",
  );
  expect(code).toBe(0);
  await directory.untilGone();
});
