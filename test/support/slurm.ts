import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { runProgram } from "../../src/cli/run/trainer-command.ts";
import { freePorts } from "./free-ports.ts";
import { HANG_MS } from "./limits.ts";

/** Where `scripts/setup-slurm.sh` unpacks it. */
const ROOT = join(packageRoot(), ".tools", "slurm", "usr");
const POLL_MS = 100;
const COMMAND_TIMEOUT_MS = 60_000;
/** How much is kept of what a daemon says, in characters. */
const ERRORS_MAX = 4096;

/** A Slurm of one test: one controller, this machine as its only node. */
export interface TestSlurm {
  /** Variables with which its commands are found and reach it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs one of its commands; answers what it printed. */
  run(program: string, ...args: string[]): Promise<string>;
  /** Ends its processes and removes its files. */
  remove(): Promise<void>;
}

/**
 * Starts munged, slurmctld and slurmd as processes of this user, on free ports; they end with the test process.
 * `more` are lines of their configuration. @throws what a daemon said that has ended.
 */
export async function startTestSlurm(...more: string[]): Promise<TestSlurm> {
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
  const lines = [...(await configuration(home, join(libraries, "slurm-wlm"))), ...more, ""];
  await writeFile(environment.SLURM_CONF, lines.join("\n"));
  // A machine, or a chroot, may have no cgroups. Of the plugins for them only this one starts without, and
  // version 22.05 cannot do without a plugin.
  await writeFile(join(home, "cgroup.conf"), "CgroupPlugin=cgroup/v1\n");
  const daemons: Daemon[] = [];
  const start = (program: string, ...args: string[]): void => {
    const env = { ...process.env, ...environment };
    daemons.push(new Daemon(join(ROOT, "sbin", program), args, env));
  };
  const kill = (): void => {
    for (const daemon of daemons) daemon.child.kill("SIGKILL");
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
      for (const daemon of daemons) daemon.child.kill("SIGTERM");
      const timer = setTimeout(kill, COMMAND_TIMEOUT_MS);
      await Promise.all(daemons.map((daemon) => daemon.ended));
      clearTimeout(timer);
      await rm(home, { recursive: true, force: true });
    },
  };
  try {
    start("munged", "-F", "--force", ...mungeFiles(home));
    await until(daemons, () => existsSync(join(home, "munge.sock")));
    start("slurmctld", "-D", "-c");
    start("slurmd", "-D", "-N", "node", "-d", join(ROOT, "sbin", "slurmstepd"));
    await until(daemons, async () =>
      (await run("sinfo", "--noheader", "--format", "%T").catch(() => "")).startsWith("idle"),
    );
    return slurm;
  } catch (error) {
    await slurm.remove();
    throw error;
  }
}

/** A process of Slurm or munge that is to run until the test ends it. */
class Daemon {
  readonly child: ChildProcess;
  /** Settles once it has ended. */
  readonly ended: Promise<unknown>;
  #errors = "";

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-ERRORS_MAX);
    });
    this.ended = once(this.child, "exit");
  }

  /** @throws what it said last, if it has ended. */
  expectRunning(): void {
    const { exitCode, signalCode, spawnfile } = this.child;
    if (exitCode === null && signalCode === null) return;
    throw new Error(`${spawnfile} ended with ${exitCode ?? signalCode}: ${this.#errors}`);
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

async function configuration(home: string, plugins: string): Promise<string[]> {
  const { username } = userInfo();
  const [controllerPort, nodePort] = await freePorts(2);
  return [
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
  ];
}

/** Waits for what only comes while all `daemons` run. */
async function until(
  daemons: readonly Daemon[],
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + HANG_MS;
  while (!(await holds())) {
    for (const daemon of daemons) daemon.expectRunning();
    if (performance.now() > deadlineMs) throw new Error("waited in vain for Slurm");
    await delay(POLL_MS);
  }
}
