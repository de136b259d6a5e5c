// Proves `--launcher slurm` with a real Slurm of one node, and `--launcher pbs` with programs that play PBS's: the job
// that is submitted, trainers that reach the server with its token, a crash and a restart, a failure for good and
// Ctrl-C, which cancel the job, and a submission that is refused. No process is left.

import { execFileSync } from "node:child_process";
import { lookup } from "node:dns/promises";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { EXIT } from "../../../src/cli/report-error.ts";
import { runProgram } from "../../../src/cli/run/trainer-command.ts";
import { runProcess, start } from "../../cli/spawn-command.ts";
import { findPython } from "../../support/find-python.ts";
import { HANG_MS } from "../../support/limits.ts";
import { makeRunDirectory, type RunDirectory } from "../../support/run-command.ts";
import { startTestSlurm, type TestSlurm } from "../../support/slurm.ts";

const WAIT = { timeout: HANG_MS, interval: 100 };

/** What a trainer says that has trained. */
const TRAINS = `
const ps = await connect({ job, trainer, timeoutMs: ${HANG_MS} });
await ps.createIfNotAlreadyCreated("w", new Float32Array(2));
await ps.pushFull("w", new Float32Array(2).fill(1), 1, 1);
await ps.close();
console.log([trainer, process.env.PSERVER_WORLD_SIZE, process.env.legion_walltime, process.env.MINE, ...process.argv.slice(2)].join("|"));`;

const WAITS = `
import { spawn } from "node:child_process";
note("child-of-" + RANK, spawn("sleep", ["3600"], { stdio: "ignore" }).pid);
setInterval(() => {}, 1000);`;

/** What a launcher has printed of one rank, without the prefix. */
function ofRank(rank: number, printed: string): string {
  const lines = printed.split("\n").filter((line) => line.startsWith(`[${rank}] `));
  return lines.map((line) => `${line.slice("[0] ".length)}\n`).join("");
}

/** What a shell, a header or a path could stumble over. */
const ODD = ["it's", "a\nb", '$HOME `x` \\ " * %a', ""];

let directory: RunDirectory;
beforeEach(async () => {
  directory = await makeRunDirectory();
  return () => directory.remove();
});

function launch(
  environment: Readonly<Record<string, string>>,
  ...args: string[]
): ReturnType<typeof start> {
  const server = ["--shards", "1", "--advertise", "127.0.0.1", "--store", "a b's store"];
  return start(["run", ...server, ...args], { cwd: directory.path, environment });
}

/** What trainers wrote, by the ending of their files, in the order of ranks. */
async function written(ending: "out" | "err" | "end"): Promise<string[]> {
  const store = join(directory.path, "a b's store");
  const [batch = ""] = (await readdir(store)).filter((name) => name.startsWith("batch-"));
  const names = (await readdir(join(store, batch))).filter((name) =>
    new RegExp(`^rank-\\d+\\.${ending}$`).test(name),
  );
  return await Promise.all(names.sort().map((name) => readFile(join(store, batch, name), "utf8")));
}

describe("slurm", () => {
  let slurm: TestSlurm;
  beforeAll(async () => {
    slurm = await startTestSlurm();
  });
  afterAll(() => slurm?.remove());

  const queue = (): Promise<string> =>
    slurm.run("squeue", "--noheader", "--states", "all", "--format", "%i %T");

  test("trainers are the tasks of one job, and what they train is saved", async () => {
    const script = await directory.script("train.mjs", TRAINS);
    const { code, stdout, stderr } = await launch(
      slurm.environment,
      ...["-n", "3", "--launcher", "slurm", "--walltime", "0:30:00", "--max-simultaneous", "2"],
      ...["--env", "MINE=it's mine", "--save", "m.npz", "--", process.execPath, script, ...ODD],
    ).finished;
    expect(stderr).not.toContain("pserver:");
    expect(code).toBe(0);
    const told = (rank: number): string =>
      `${[`trainer-${rank}`, "3", "00:30:00", "it's mine", ...ODD].join("|")}\n`;
    expect(await written("out")).toEqual([told(0), told(1), told(2)]);
    expect([0, 1, 2].map((rank) => ofRank(rank, stdout))).toEqual([told(0), told(1), told(2)]);
    expect(stderr).toContain("ranks 0-2  ended well");
    expect(await written("end")).toEqual(["0 0\n", "0 0\n", "0 0\n"]);
    expect(await readdir(directory.path)).toContain("m.npz");
    const [, jobId = ""] = /submitted as job (\d+)/.exec(stderr) ?? [];
    const shown = await slurm.run("scontrol", "show", "job", jobId);
    expect(shown).toContain("TimeLimit=00:30:00");
    expect(shown).toContain("JobName=pserver-default");
    // The token is in no file that others read, and in none that stays.
    const [scriptText = ""] = await scripts();
    expect(scriptText).toContain("#SBATCH --array=0-2%2");
    expect(scriptText).not.toContain("NATS_TOKEN");
    expect(await batchFiles()).not.toContain("credentials");
    await directory.untilGone();
  });

  test("--torch-env: tasks form one process group of PyTorch, at the machine of rank 0", async () => {
    const script = await directory.script(
      "train.py",
      `import os
# Debian 13 builds PyTorch without libuv, which PyTorch asks for unless it is told not to.
os.environ["USE_LIBUV"] = "0"
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
names = "MASTER_ADDR LOCAL_RANK LOCAL_WORLD_SIZE GROUP_WORLD_SIZE REMOVED"
print(total.item(), *[os.environ.get(name) for name in names.split()])`,
    );
    const { code, stdout, stderr } = await launch(
      { ...slurm.environment, REMOVED: "by --env" },
      ...["-n", "2", "--launcher", "slurm", "--torch-env", "--env", "REMOVED-", "--restarts", "0"],
      ...["--", await findPython("torch"), script],
    ).finished;
    expect(stderr).not.toContain("Traceback");
    expect(code).toBe(0);
    // A bare machine has no address for its name.
    const isNamed = await lookup(hostname()).then(
      () => true,
      () => false,
    );
    const meeting = isNamed ? hostname() : expect.stringMatching(/^[0-9a-f.:]+$/);
    const words = stdout
      .trim()
      .split("\n")
      .sort()
      .map((line) => line.split(" "));
    expect(words).toEqual(
      [0, 1].map((rank) => [`[${rank}]`, "3.0", meeting, "0", "1", "2", "None"]),
    );
  });

  test("--torch-env: a task does not wait for a rank 0 that has ended", async () => {
    const script = await directory.script("train.mjs", WAITS);
    const running = launch(
      slurm.environment,
      ...["-n", "2", "--launcher", "slurm", "--torch-env", "--", process.execPath, script],
    );
    await directory.untilNoted(2, /^child/);
    const [text = ""] = await scripts();
    running.child.kill("SIGINT");
    await running.finished;
    // The same script, where rank 0 has left how it ended and not where trainers meet.
    const store = join(directory.path, "a b's store");
    const [batch = ""] = (await readdir(store)).filter((name) => name.startsWith("batch-"));
    await rm(join(store, batch, "meeting"));
    await writeFile(join(store, batch, "rank-0.end"), "1 0\n");
    await writeFile(join(store, batch, "credentials"), "");
    await writeFile(join(directory.path, "again.sh"), text);
    const environment = { ...process.env, SLURM_ARRAY_TASK_ID: "1" };
    const again = await runProgram(["sh", join(directory.path, "again.sh")], {
      environment,
      timeoutMs: HANG_MS,
    });
    expect(again.code).toBe(125);
    expect((await written("err"))[1]).toContain(
      "rank 0 has not said within 0 s where trainers meet",
    );
  });

  test("one that crashes comes back on its node under its id; one that fails for good ends the job", async () => {
    const script = await directory.script(
      "train.mjs",
      `import { existsSync } from "node:fs";
       if (RANK === "1" && existsSync("again")) process.exit(33);
       if (RANK === "1") { writeFileSync("again", ""); process.kill(process.pid, "SIGKILL"); }
       ${WAITS}`,
    );
    const { code, stderr } = await launch(
      slurm.environment,
      ...["-n", "2", "--launcher", "slurm", "--restarts", "1", "--", process.execPath, script],
    ).finished;
    expect(stderr).toContain(
      "trainer-1 ended with exit code 33; it was started again 1 time; stopping",
    );
    expect(stderr).toMatch(
      /rank 0 {2}stopped\n.*rank 1 {2}ended with exit code 33; it was started/,
    );
    expect(code).toBe(33);
    expect((await written("err"))[1]).toContain("exit code 137; starting it again (1 of 1)");
    expect(await directory.noted(/^trainer-1/)).toHaveLength(2);
    await directory.untilGone();
    expect(await slurm.run("squeue", "--noheader")).toBe("");
  });

  test("what trainers print is printed while they run, and to its end", async () => {
    const script = await directory.script(
      "train.mjs",
      `import { existsSync, watch } from "node:fs";
       console.log("first of " + RANK);
       process.stderr.write("complains " + RANK + " \\n half");
       const timer = setInterval(() => {
         if (!existsSync("seen")) return;
         clearInterval(timer);
         process.stdout.write("x".repeat(1_000_000) + "\\nlast without an end");
       }, 50);`,
    );
    const running = launch(
      slurm.environment,
      ...["-n", "2", "--launcher", "slurm", "--", process.execPath, script],
    );
    const seen = (): string[] => running.output().split("\n").sort();
    await vi.waitFor(() => expect(seen()).toEqual(["", "[0] first of 0", "[1] first of 1"]), WAIT);
    expect(await directory.noted(/^trainer/)).toHaveLength(2);
    await writeFile(join(directory.path, "seen"), "");
    const { code, stdout, stderr } = await running.finished;
    expect(code).toBe(0);
    for (const rank of [0, 1]) {
      expect(stderr).toContain(`[${rank}] complains ${rank} \n`);
      expect(stderr).toContain(`[${rank}]  half\n`);
      const [first, ...rest] = ofRank(rank, stdout).trimEnd().split("\n");
      expect(first).toBe(`first of ${rank}`);
      expect(rest.pop()).toBe("last without an end");
      expect(rest.join("")).toBe("x".repeat(1_000_000));
    }
  });

  test("Ctrl-C cancels the job", async () => {
    const script = await directory.script("train.mjs", WAITS);
    const running = launch(
      slurm.environment,
      ...["-n", "2", "--launcher", "slurm", "--", process.execPath, script],
    );
    await directory.untilNoted(2, /^child/);
    running.child.kill("SIGINT");
    const { code, stderr } = await running.finished;
    expect(stderr).toContain("ABORTED");
    expect(code).toBe(EXIT.interrupted);
    await directory.untilGone();
    expect(await slurm.run("squeue", "--noheader")).toBe("");
  });

  test("a job that somebody else cancels is a failure", async () => {
    const script = await directory.script("train.mjs", WAITS);
    const running = launch(
      slurm.environment,
      "--launcher",
      "slurm",
      "--",
      process.execPath,
      script,
    );
    await directory.untilNoted(1, /^child/);
    await vi.waitFor(() => expect(running.errors()).toMatch(/submitted as job \d+/), WAIT);
    await slurm.run("scancel", /submitted as job (\d+)/.exec(running.errors())?.[1] ?? "");
    const { code, stderr } = await running.finished;
    expect(stderr).toContain("trainer-0 ended with exit code 143 (SIGTERM)");
    expect(code).toBe(143);
    await directory.untilGone();
  });

  test("a Slurm that cannot start is told at once", async () => {
    await expect(startTestSlurm("SelectType=select/none_such")).rejects.toThrow(
      /slurmctld ended with 1: .*none_such/s,
    );
  });

  test("a job that Slurm refuses is one line, and the server goes", async () => {
    const script = await directory.script("train.mjs", WAITS);
    const { code, stderr } = await launch(
      slurm.environment,
      ...["--launcher", "slurm", "--queue", "nowhere", "--", process.execPath, script],
    ).finished;
    expect(stderr).toMatch(
      /pserver: UNSUPPORTED: sbatch did not take the job: .*invalid partition/,
    );
    expect(code).toBe(4);
    expect(await queue()).not.toContain("PENDING");
    expect(await batchFiles()).toEqual(["run.sh"]);
  });
});

/** Names of the files that are kept of a batch job. */
async function batchFiles(): Promise<string[]> {
  const store = join(directory.path, "a b's store");
  const [batch = ""] = (await readdir(store)).filter((name) => name.startsWith("batch-"));
  return await readdir(join(store, batch));
}

async function scripts(): Promise<string[]> {
  const store = join(directory.path, "a b's store");
  const batches = (await readdir(store)).filter((name) => name.startsWith("batch-"));
  return await Promise.all(batches.map((name) => readFile(join(store, name, "run.sh"), "utf8")));
}

describe.each(["torque", "openpbs"] as const)("pbs, as %s", (dialect) => {
  let environment: Record<string, string>;
  beforeEach(async () => {
    const [flag, index, version] =
      dialect === "torque"
        ? ["-t", "PBS_ARRAYID", "Version: 6.1.2"]
        : ["-J", "PBS_ARRAY_INDEX", "pbs_version = 20.0.1"];
    const jobs = join(directory.path, "jobs");
    // Tasks are processes of sessions of their own; the environment is that of the submission.
    const bin = await directory.program(
      "qsub",
      `[ "$1" = --version ] && { echo "${version}" >&2; exit; }
       [ "$1" = -V ] || exit 2
       mkdir -p ${jobs}; cp "$2" ${jobs}/script
       env >${jobs}/environment; ls -l "$(dirname "$2")/credentials" >${jobs}/mode
       last=$(sed -n 's/^#PBS ${flag} 0-\\([0-9]*\\).*/\\1/p' "$2")
       [ -n "$last" ] || exit 3
       for task in $(seq 0 "$last"); do
         ${index}=$task setsid sh "$2" </dev/null >/dev/null 2>&1 & echo $! >${jobs}/task-$task
       done
       echo "17[].server"`,
    );
    await directory.program(
      "qstat",
      `[ "$1 $2" = "-t 17[].server" ] || exit 2
       alive=; for file in ${jobs}/task-*; do kill -s 0 "$(cat "$file")" 2>/dev/null && alive=1; done
       [ -n "$alive" ] || { echo "qstat: Unknown Job Id 17[].server" >&2; exit 153; }
       echo "Job ID   Name User Time S Queue"; echo "17[0].server pserver-default me 0 R batch"`,
    );
    await directory.program(
      "qdel",
      `echo "$1" >>${jobs}/deleted
       for file in ${jobs}/task-*; do kill -s TERM -- "-$(cat "$file")" 2>/dev/null; done; exit 0`,
    );
    environment = { PATH: `${bin}:${process.env["PATH"]}` };
  });

  test("trainers are the tasks of one job", async () => {
    const script = await directory.script("train.mjs", TRAINS);
    const { code, stderr } = await launch(
      environment,
      ...[
        "-n",
        "2",
        "--launcher",
        "pbs",
        "--account",
        "jvb-000-aa",
        "--gpus",
        "1",
        "--env",
        "MINE=x",
      ],
      ...["--walltime", "1-00:00:00", "--", process.execPath, script, ...ODD],
    ).finished;
    expect(stderr).not.toContain("pserver:");
    expect(code).toBe(0);
    const told = (rank: number): string =>
      `${[`trainer-${rank}`, "2", "24:00:00", "x", ...ODD].join("|")}\n`;
    expect(await written("out")).toEqual([told(0), told(1)]);
    const header = await readFile(join(directory.path, "jobs", "script"), "utf8");
    expect(header).toContain("#PBS -l walltime=24:00:00\n#PBS -A jvb-000-aa\n");
    const node = dialect === "torque" ? "nodes=1:gpus=1" : "select=1:ngpus=1";
    expect(header).toContain(`#PBS -l ${node}\n`);
    // The trainers had the token, and neither the queue, which shows what -V has taken, nor the script has it.
    const taken = await readFile(join(directory.path, "jobs", "environment"), "utf8");
    expect(taken).toContain("PATH=");
    expect(taken + header).not.toMatch(/NATS_|TOKEN/);
    expect(await readFile(join(directory.path, "jobs", "mode"), "utf8")).toMatch(/^-rw------- /);
    expect(await batchFiles()).not.toContain("credentials");
    await directory.untilGone();
  });

  test("Ctrl-C deletes the job", async () => {
    const script = await directory.script("train.mjs", WAITS);
    const running = launch(
      environment,
      ...["-n", "2", "--launcher", "pbs", "--", process.execPath, script],
    );
    await directory.untilNoted(2, /^child/);
    running.child.kill("SIGINT");
    expect(await running.finished).toMatchObject({ code: EXIT.interrupted });
    expect(await readFile(join(directory.path, "jobs", "deleted"), "utf8")).toBe("17[].server\n");
    await directory.untilGone();
  });
});

test("a dry run prints the script, which a shell can read, and starts nothing", async () => {
  const { code, stdout, stderr } = await runProcess(
    [
      "run",
      "-n",
      "4",
      "--launcher",
      "slurm",
      "--advertise",
      "10.0.0.1",
      "--dry-run",
      "--",
      "sh",
      "-c",
      "exit 0",
      ...ODD,
    ],
    { cwd: directory.path },
  );
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("#SBATCH --array=0-3\n");
  expect(stdout).toContain("export PSERVER_URL=nats://10.0.0.1:PORT\n");
  expect(stdout).toContain("# sbatch --parsable --export=ALL run.sh\n");
  await writeFile(join(directory.path, "printed"), stdout);
  execFileSync("sh", ["-n", join(directory.path, "printed")]);
  expect(await readdir(directory.path)).toEqual(["bin", "pids", "printed"]);
});
