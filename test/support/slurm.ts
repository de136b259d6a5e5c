import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { packageRoot } from "../../src/broker/package-root.ts";
import { runProgram } from "../../src/cli/run/run-program.ts";
import { freePorts } from "./free-ports.ts";
import { HANG_MS } from "./limits.ts";

/** Where `scripts/setup-slurm.sh` unpacks it. */
const ROOT = join(packageRoot(), ".tools", "slurm", "usr");
const POLL_MS = 100;
const COMMAND_TIMEOUT_MS = 60_000;

/** A Slurm of one test: one controller, this machine as its only node. */
export interface TestSlurm {
  /** Variables with which its commands are found and reach it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs one of its commands; answers what it printed. */
  run(program: string, ...args: string[]): Promise<string>;
  /** Ends its processes and removes its files. */
  remove(): Promise<void>;
}

/** Starts munged, slurmctld and slurmd as processes of this user, on free ports; they end with the test process. */
export async function startTestSlurm(): Promise<TestSlurm> {
  const home = await mkdtemp(join(tmpdir(), "pserver-slurm-"));
  // munged takes its socket only from a directory that everybody may enter.
  await chmod(home, 0o755);
  const libraries = join(ROOT, "lib", readdirSync(join(ROOT, "lib")).find(isLibraries) ?? "");
  const environment = {
    SLURM_CONF: join(home, "slurm.conf"),
    LD_LIBRARY_PATH: `${libraries}:${join(libraries, "slurm-wlm")}`,
    PATH: `${join(ROOT, "bin")}:${process.env["PATH"] ?? ""}`,
  };
  await mkdir(join(home, "state"));
  await mkdir(join(home, "spool"));
  await writeFile(join(home, "munge.key"), randomBytes(1024), { mode: 0o400 });
  await writeFile(environment.SLURM_CONF, await configuration(home, join(libraries, "slurm-wlm")));
  const children: ChildProcess[] = [];
  const start = (program: string, ...args: string[]): void => {
    const child = spawn(join(ROOT, "sbin", program), args, {
      stdio: "ignore",
      env: { ...process.env, ...environment },
    });
    children.push(child);
  };
  const kill = (): void => {
    for (const child of children) child.kill("SIGKILL");
  };
  process.once("exit", kill);
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const options = {
      environment: { ...process.env, ...environment },
      timeoutMs: COMMAND_TIMEOUT_MS,
    };
    const { code, stdout, stderr } = await runProgram([program, ...args], options);
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${stderr}`);
    return stdout;
  };
  const slurm: TestSlurm = {
    environment,
    run,
    async remove() {
      process.off("exit", kill);
      const ended = children.map((child) => new Promise((resolve) => child.once("close", resolve)));
      for (const child of children) child.kill("SIGTERM");
      const timer = setTimeout(kill, COMMAND_TIMEOUT_MS);
      await Promise.all(ended);
      clearTimeout(timer);
      await rm(home, { recursive: true, force: true });
    },
  };
  try {
    start("munged", "-F", "--force", ...mungeFiles(home));
    await until(() => existsSync(join(home, "munge.sock")));
    start("slurmctld-wlm", "-D", "-c");
    start("slurmd-wlm", "-D", "-N", "node", "-d", join(ROOT, "sbin", "slurmstepd-wlm"));
    await until(async () =>
      (await run("sinfo", "--noheader", "--format", "%T").catch(() => "")).startsWith("idle"),
    );
    return slurm;
  } catch (error) {
    await slurm.remove();
    throw error;
  }
}

const isLibraries = (name: string): boolean => name.endsWith("-linux-gnu");

function mungeFiles(home: string): string[] {
  return [
    `--socket=${join(home, "munge.sock")}`,
    `--key-file=${join(home, "munge.key")}`,
    `--log-file=${join(home, "munged.log")}`,
    `--pid-file=${join(home, "munged.pid")}`,
    `--seed-file=${join(home, "munged.seed")}`,
  ];
}

async function configuration(home: string, plugins: string): Promise<string> {
  const { username } = userInfo();
  const [controllerPort, nodePort] = await freePorts(2);
  return `${[
    "ClusterName=test",
    `SlurmctldHost=${hostname()}(127.0.0.1)`,
    `SlurmctldPort=${controllerPort}`,
    `SlurmUser=${username}`,
    `SlurmdUser=${username}`,
    "AuthType=auth/munge",
    `AuthInfo=socket=${join(home, "munge.sock")}`,
    `PluginDir=${plugins}`,
    `StateSaveLocation=${join(home, "state")}`,
    `SlurmdSpoolDir=${join(home, "spool")}`,
    `SlurmctldPidFile=${join(home, "slurmctld.pid")}`,
    `SlurmdPidFile=${join(home, "slurmd.pid")}`,
    `SlurmctldLogFile=${join(home, "slurmctld.log")}`,
    `SlurmdLogFile=${join(home, "slurmd.log")}`,
    "ProctrackType=proctrack/linuxproc",
    "TaskPlugin=task/none",
    "SwitchType=switch/none",
    "MpiDefault=none",
    "SelectType=select/cons_tres",
    "SelectTypeParameters=CR_Core",
    // Quick where a cluster spares its controller.
    "SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0",
    "KillWait=2",
    `NodeName=node NodeHostname=${hostname()} NodeAddr=127.0.0.1 Port=${nodePort} CPUs=${availableParallelism()} State=UNKNOWN`,
    "PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=FORCE:4 State=UP",
  ].join("\n")}\n`;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + HANG_MS;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error("waited in vain for Slurm");
    await delay(POLL_MS);
  }
}
