// Proves `pserver run` on this machine, with real trainers in processes of their own: what they are told, whole
// lines behind ranks, a crash and a restart under the id, a failure for good, Ctrl-C, the wall time, and that
// whatever ends the launcher, SIGKILL too, leaves none of all their processes.
import { readdirSync, readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { EXIT } from "../../../src/cli/report-error.ts";
import { openModel } from "../../../src/model-files/index.ts";
import { runProcess, start } from "../../cli/spawn-command.ts";
import { startTestBroker } from "../../support/broker.ts";
import { HANG_MS } from "../../support/limits.ts";
import { makeRunDirectory, type RunDirectory } from "../../support/run-command.ts";
import { signalProcess } from "../../support/signals.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };

/** Adds 1 to every element of "w" once, whoever creates it. */
const TRAINS = `
const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
await ps.createIfNotAlreadyCreated("w", new Float32Array(4));
await ps.pushFull("w", new Float32Array(4).fill(1), 1, 1);
await ps.close();`;

/** A trainer that starts a process of its own and goes on for longer than a test. */
const WAITS = `
import { spawn } from "node:child_process";
note("child-of-" + RANK, spawn("sleep", ["3600"], { stdio: "ignore" }).pid);
setInterval(() => {}, 1000);`;

let directory: RunDirectory;
beforeEach(async () => {
  directory = await makeRunDirectory();
  return () => directory.remove();
});

/** What runs in the directory of the test, or was told of it. */
function left(): { pid: number; line: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(directory.path) ? [{ pid: Number(pid), line }] : [];
      } catch {
        // It has ended since.
        return [];
      }
    });
}

/** The values of "w" in a model that the run has saved. */
async function savedValues(name: string): Promise<Float32Array> {
  const model = await openModel(join(directory.path, name));
  onTestFinished(() => model.close());
  const chunks: Uint8Array[] = [];
  for await (const chunk of model.tensors[0]?.chunks() ?? []) chunks.push(chunk);
  return new Float32Array(Uint8Array.from(Buffer.concat(chunks)).buffer);
}

async function nothingIsLeft(): Promise<void> {
  await directory.untilGone();
  await vi.waitFor(() => expect(left()).toEqual([]), WAIT);
}

/** `pserver run` in the directory of the test, with a small server. */
const launch = (...args: string[]): ReturnType<typeof start> =>
  start(["run", "--shards", "1", ...args], {
    cwd: directory.path,
    environment: { NATS_CREDS: "/nowhere/creds", PLAIN: "kept", REMOVED: "by --env" },
  });

test("a trainer that names neither job nor id joins the run's job under its own id", async () => {
  const script = await directory.script(
    "names-nothing.mjs",
    `const ps = await connect({ timeoutMs: ${HANG_MS} });
     console.log(await ps.beginInit());
     await ps.abortInit();
     console.log((await ps.status()).state, await ps.beginInit());
     await ps.initParam("w", new Float32Array(2));
     await ps.finishInit();
     console.log((await ps.status()).by, await ps.abortInit().catch(({ code }) => code));
     await ps.close();`,
  );
  const { code, stdout } = await launch("-n", "1", "--job", "mine", "--", "node", script).finished;
  expect(stdout.split("\n")).toEqual([
    "[0] true",
    "[0] uninitialized true",
    "[0] trainer-0 NOT_SELECTED",
    "",
  ]);
  expect(code).toBe(0);
});

test("trainers get their ids and ranks and train one model, which is saved; temporary data is removed", async () => {
  const variables = [
    ..."PSERVER_JOB PSERVER_TRAINER PSERVER_RANK PSERVER_WORLD_SIZE PSERVER_LOCAL_RANK PLAIN REMOVED MINE".split(
      " ",
    ),
    ..."legion_instances legion_job_name legion_walltime legion_debug NATS_CREDS".split(" "),
  ];
  const script = await directory.script(
    "train.mjs",
    `${TRAINS}
     const shown = ${JSON.stringify(variables)}.map((name) => process.env[name] ?? "none");
     console.log([...shown, ...process.argv.slice(2)].join("|"));
     const { legion_server_ip: ip, legion_server_port: port, PSERVER_URL: url } = process.env;
     if (url !== "nats://" + ip + ":" + port) console.log("another address");
     if (process.env.legion_script_path !== process.argv[1]) console.log("another script");
     console.error("said by " + RANK + "\\r\\nand unfinished");
     process.stderr.write("end");`,
  );
  const { code, stdout, stderr } = await launch(
    ...[
      "-n",
      "2",
      "--job",
      "mnist",
      "--env",
      "MINE=a=b c",
      "--env",
      "REMOVED-",
      "--walltime",
      "1:00:00",
    ],
    ...["--save", "out/model.safetensors", "--", "node", script, "it's", "--json", "-n", "$HOME\t"],
  ).finished;
  expect(stderr).not.toContain("pserver:");
  expect(code).toBe(0);
  const told = (rank: number): string =>
    `[${rank}] mnist|trainer-${rank}|${rank}|2|${rank}|kept|none|a=b c|2|mnist|01:00:00|false|none|it's|--json|-n|$HOME\t`;
  expect(stdout.split("\n").sort()).toEqual(["", told(0), told(1)]);
  for (const rank of [0, 1]) {
    expect(stderr).toContain(`[${rank}] said by ${rank}\n`);
    expect(stderr).toContain(`[${rank}] and unfinished\n`);
    expect(stderr).toContain(`[${rank}] end\n`);
  }
  expect([...(await savedValues("out/model.safetensors"))]).toEqual([2, 2, 2, 2]);
  expect(await readdir(join(directory.path, ".pserver"))).toEqual([]);
  await nothingIsLeft();
});

/** What one of two trainers has of these variables, in their order. */
async function variablesOf(names: string, ...args: string[]): Promise<string[]> {
  const print = `for (const name of ${JSON.stringify(names.split(" "))}) console.log(name + "=" + process.env[name]);`;
  const script = await directory.script("print.mjs", `if (RANK === "1") { ${print} }`);
  const { code, stdout } = await launch("-n", "2", ...args, "--", "node", script).finished;
  expect(code).toBe(0);
  return stdout.trim().split("\n");
}

test("trainers that share a machine have one thread each, unless the user says otherwise", async () => {
  expect(await variablesOf("OMP_NUM_THREADS")).toEqual(["[1] OMP_NUM_THREADS=1"]);
  const env = ["--env", "OMP_NUM_THREADS=3"];
  expect(await variablesOf("OMP_NUM_THREADS", ...env)).toEqual(["[1] OMP_NUM_THREADS=3"]);
  const one = await directory.script(
    "one.mjs",
    `console.log("threads", process.env.OMP_NUM_THREADS);`,
  );
  const alone = await launch("--", "node", one).finished;
  expect(alone.stdout).toBe("[0] threads undefined\n");
  expect(alone.stderr).not.toContain("OMP_NUM_THREADS");
});

test("--env overrides what a trainer gets of its own, and takes it away", async () => {
  const env = ["--env", "PSERVER_LOCAL_RANK=7", "--env", "PSERVER_RANK-"];
  const script = await directory.script(
    "print.mjs",
    "console.log(process.env.PSERVER_LOCAL_RANK, process.env.PSERVER_RANK);",
  );
  const { stdout } = await launch("-n", "2", ...env, "--", "node", script).finished;
  expect(stdout.split("\n").sort()).toEqual(["", "[0] 7 undefined", "[1] 7 undefined"]);
});

test("one that crashes comes back under its id and rank, the others continue", async () => {
  const script = await directory.script(
    "train.mjs",
    `import { existsSync } from "node:fs";
     if (RANK === "1" && !existsSync("crashed")) {
       writeFileSync("crashed", "");
       process.kill(process.pid, "SIGSEGV");
     }
     ${TRAINS}
     console.log(trainer);`,
  );
  const { code, stdout, stderr } = await launch("-n", "2", "--json", "--", "node", script).finished;
  expect(code).toBe(0);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines[0]).toMatchObject({ ready: true, job: "default", instances: 2, launcher: "local" });
  const printed = lines.slice(1).filter(({ stdout: line }) => line !== undefined);
  expect(printed.sort((a, b) => a.rank - b.rank)).toEqual([
    { rank: 0, stdout: "trainer-0" },
    { rank: 1, stdout: "trainer-1" },
  ]);
  expect(stderr).toContain(
    "trainer-1 ended with exit code 139 (SIGSEGV); starting it again (1 of 3)",
  );
  expect(await directory.noted(/^trainer-0/)).toHaveLength(1);
  expect(await directory.noted(/^trainer-1/)).toHaveLength(2);
  await nothingIsLeft();
});

test("one that fails for good stops the others; its code is the launcher's, and the data stays", async () => {
  const script = await directory.script(
    "train.mjs",
    `import { spawn } from "node:child_process";
     ${TRAINS}
     if (RANK === "1") process.exit(37);
     note("child-of-" + RANK, spawn("sleep", ["3600"], { stdio: "ignore" }).pid);
     setInterval(() => {}, 1000);`,
  );
  const { code, stderr } = await launch(
    ...["-n", "3", "--restarts", "1", "--save", "m.npz", "--", "node", script],
  ).finished;
  expect(stderr).toContain(
    "trainer-1 ended with exit code 37; it was started again 1 time; stopping",
  );
  expect(code).toBe(37);
  expect(await directory.noted(/^trainer-1/)).toHaveLength(2);
  await nothingIsLeft();
  expect(await readdir(directory.path)).toContain("m.npz");
  const [name = ""] = await readdir(join(directory.path, ".pserver"));
  expect(stderr).toContain(`${name}; continue with --store`);
  // What was folded is there for the next run.
  const pull = await directory.script(
    "pull.mjs",
    `const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
     console.log((await ps.pullFull("w")).data.length);
     await ps.close();`,
  );
  const again = await launch("--store", join(".pserver", name), "--", "node", pull).finished;
  expect([again.code, again.stdout]).toEqual([0, "[0] 4\n"]);
});

test.each(["SIGINT", "SIGTERM"] as const)("%s ends all, with what they started", async (signal) => {
  const script = await directory.script(
    "train.mjs",
    `process.on("SIGINT", () => { console.log("saw SIGINT"); process.exit(0); });
     ${WAITS}`,
  );
  const running = launch("-n", "2", "--", "node", script);
  await directory.untilNoted(2, /^child/);
  running.child.kill(signal);
  const { code, stdout, stderr } = await running.finished;
  expect(stderr).toContain(`ABORTED: interrupted by ${signal}`);
  expect(code).toBe(EXIT.interrupted);
  expect(stdout.split("\n").sort()).toEqual(["", "[0] saw SIGINT", "[1] saw SIGINT"]);
  await nothingIsLeft();
});

test("a launcher that is killed leaves no process, not even one that ignores SIGTERM", async () => {
  const script = await directory.script(
    "train.mjs",
    `if (RANK === "1") process.on("SIGTERM", () => {});
     ${WAITS}`,
  );
  const running = launch("-n", "2", "--hosts", "2", "--", "node", script);
  await directory.untilNoted(2, /^child/);
  running.child.kill("SIGKILL");
  await running.finished;
  await nothingIsLeft();
});

test("a host that is killed comes back, and the trainers lose nothing", async () => {
  const script = await directory.script(
    "train.mjs",
    `import { existsSync } from "node:fs";
     const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
     await ps.createIfNotAlreadyCreated("w", new Float32Array(4096));
     let pushes = 0;
     const push = async () => {
       await ps.pushFull("w", new Float32Array(4096).fill(1), 1, 1);
       pushes += 1;
     };
     await push();
     note("pushed-" + RANK, process.pid);
     while (!existsSync("enough")) await push();
     await push();
     await ps.close();
     console.log(pushes);`,
  );
  const running = launch(
    ...["-n", "2", "--hosts", "2", "--shards", "4", "--save", "m.npz", "--", "node", script],
  );
  await directory.untilNoted(2, /^pushed/);
  const host = left().find(({ line }) => line.includes(" host --url "));
  signalProcess(host?.pid, "SIGKILL");
  await vi.waitFor(() => expect(running.errors()).toMatch(/host process 2 is back/), WAIT);
  await writeFile(join(directory.path, "enough"), "");
  const { code, stdout, stderr } = await running.finished;
  expect(stderr).toContain("ended by SIGKILL; starting it again");
  expect(code).toBe(0);
  const pushes = [...stdout.matchAll(/^\[\d\] (\d+)$/gm)].map((match) => Number(match[1]));
  expect(pushes).toHaveLength(2);
  expect([...new Set(await savedValues("m.npz"))]).toEqual([
    pushes.reduce((sum, count) => sum + count, 0),
  ]);
  await nothingIsLeft();
});

test("the wall time ends it", async () => {
  const script = await directory.script("train.mjs", WAITS);
  const { code, stderr } = await launch("--walltime", "0:00:01", "--", "node", script).finished;
  expect(stderr).toContain("ABORTED: the wall time of 00:00:01 is over");
  expect(code).toBe(EXIT.interrupted);
  await vi.waitFor(() => expect(left()).toEqual([]), WAIT);
});

test("a running server is used, with the given credentials, and stays", async () => {
  const token = "it's a secret";
  const broker = await startTestBroker({ extraConfig: `authorization { token: "${token}" }` });
  onTestFinished(() => broker.remove());
  const { url } = broker;
  const environment = { NATS_TOKEN: token };
  const refused = await runProcess(["run", "--url", url, "--", "true"], { environment });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("NO_HOST") });
  const host = start(
    [
      "host",
      "--url",
      url,
      "--shards",
      "1",
      "--model-dir",
      join(directory.path, "models"),
      "--json",
    ],
    { environment },
  );
  await host.firstLine;
  const script = await directory.script(
    "train.mjs",
    `${TRAINS}\nconsole.log(process.env.NATS_TOKEN);`,
  );
  const { code, stdout, stderr } = await start(
    ["run", "--url", url, "--token", token, "-n", "2", "--save", "m.npz", "--", "node", script],
    { cwd: directory.path },
  ).finished;
  expect(stderr).toContain("saved ");
  expect(code).toBe(0);
  expect(stdout.split("\n").sort()).toEqual(["", `[0] ${token}`, `[1] ${token}`]);
  expect(await readdir(join(directory.path, "models"))).toContain("m.npz");
  await directory.untilGone();
  host.child.kill("SIGTERM");
  expect(await host.finished).toMatchObject({ code: 0 });
});

test("a python script is a trainer, and legion starts it under its old flags", async () => {
  const script = await directory.script(
    "train.py",
    `import os, sys
names = ["legion_job_name", "legion_debug", "legion_instances", "legion_walltime", "PSERVER_JOB",
         "CUDA_VISIBLE_DEVICES", "THEANO_FLAGS"]
print("|".join([os.environ[name] for name in names] + sys.argv[1:]))
assert os.path.samefile(os.environ["legion_script_path"], sys.argv[0])
`,
  );
  const main = join(import.meta.dirname, "../../../dist/legion.js");
  const { code, stdout, stderr } = await runProcess(
    [
      ...[script, "--debug", "--instances", "2", "--debug_devices", "gpu0;gpu3"],
      ...[
        "--job_name",
        "my job",
        "--walltime",
        "3:00:00",
        "--user_script_args",
        "--x 'a b' $PSERVER_RANK",
      ],
    ],
    { cwd: directory.path, main },
  );
  expect(stderr).not.toContain("Traceback");
  expect(code).toBe(0);
  const told = (rank: number, device: number): string =>
    `[${rank}] my job|true|2|03:00:00|my-job|${device}|device=gpu${device}|--x|a b|${rank}`;
  expect(stdout.split("\n").sort()).toEqual(["", told(0, 0), told(1, 3)]);
  await vi.waitFor(() => expect(left()).toEqual([]), WAIT);
});
