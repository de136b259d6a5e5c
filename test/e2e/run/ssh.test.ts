// Proves `--launcher ssh` with a program that plays ssh: it runs what it is given with the login shell's quoting and
// without our environment, and is a connection that can break. Trainers on three machines in turn reach the
// server with its token alone, and end with their connection.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { EXIT } from "../../../src/cli/report-error.ts";
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
     const { MACHINE, PSERVER_LOCAL_RANK: LOCAL_RANK, PSERVER_WORLD_SIZE: WORLD_SIZE, MINE } = process.env;
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

/** What trainers on a, b and a again have of torch.distributed's variables. */
async function torchVariables(connection: string): Promise<{ printed: string[]; errors: string }> {
  const names =
    "MASTER_ADDR RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE OMP_NUM_THREADS";
  const script = await directory.script(
    "print.mjs",
    `const port = Number(process.env.MASTER_PORT);
     const isFree = port >= 20000 && port < 32768;
     console.log([...${JSON.stringify(names.split(" "))}.map((name) => process.env[name]), isFree].join(" "));`,
  );
  await directory.program(
    "ssh",
    `while [ "$1" != "\${1#-}" ]; do [ "$1" = -o ] && shift; shift; done
     case $1 in b) omp=OMP_NUM_THREADS=5 ;; *) omp=NONE= ;; esac; shift
     cd / && exec env -i PATH="$PATH" SSH_CONNECTION="${connection}" "$omp" sh -c "$*"`,
  );
  const { code, stdout, stderr } = await launch(
    ...["-n", "5", "--machines", "a,b", "--torch-env", "--", process.execPath, script],
  ).finished;
  expect(code).toBe(0);
  return { printed: stdout.trim().split("\n").sort(), errors: stderr };
}

test("--torch-env: trainers meet at rank 0's machine, under the address at which ssh reached it", async () => {
  const { printed, errors } = await torchVariables("10.1.1.1 5000 10.1.1.2 22");
  expect(printed).toEqual([
    "[0] 10.1.1.2 0 5 0 3 0 2 1 true",
    "[1] 10.1.1.2 1 5 0 2 1 2 5 true",
    "[2] 10.1.1.2 2 5 1 3 0 2 1 true",
    "[3] 10.1.1.2 3 5 1 2 1 2 5 true",
    "[4] 10.1.1.2 4 5 2 3 0 2 1 true",
  ]);
  expect(errors.match(/OMP_NUM_THREADS=1/g)).toHaveLength(1);
});

test("--torch-env: if rank 0's machine is this one, others get the address that they can reach", async () => {
  const { printed } = await torchVariables("::1 5000 ::1 22");
  expect(printed[1]).toBe("[1] 127.0.0.1 1 5 0 2 1 2 5 true");
});

test("--torch-env: where ssh does not say, the machine's name is the address", async () => {
  const { printed } = await torchVariables("");
  expect(printed[1]).toBe("[1] a 1 5 0 2 1 2 5 true");
});

test("--torch-env: a first machine that cannot be reached is one line, and nothing starts", async () => {
  const script = await directory.script("train.mjs", "setInterval(() => {}, 1000);");
  const { code, stderr } = await launch(
    ...["-n", "2", "--machines", "broken,a", "--torch-env", "--", process.execPath, script],
  ).finished;
  expect(stderr).toContain(
    "IO: broken, the machine of rank 0, did not say where trainers can meet: no route to broken",
  );
  expect(code).toBe(EXIT.files);
  expect(await directory.noted(/^trainer/)).toEqual([]);
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
