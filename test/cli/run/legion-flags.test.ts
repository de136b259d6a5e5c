// Proves which command line of `pserver` each of Legion's old flags becomes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toRunArguments } from "../../../src/cli/run/run-legion.ts";

const DEFAULTS = { walltime: "12:00:00", job_name: "[Unspecified]", user_script_args: "" };

let home: string;
let script: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "pserver-legion-"));
  script = join(home, "train.py");
  mkdirSync(join(home, "plain"));
  for (const name of ["train.py", "sbatch", "qsub", "python3", "sh", "plain/python3"]) {
    writeFileSync(join(home, name), "", { mode: 0o755 });
  }
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("a job of a batch system", () => {
  const flags = {
    ...DEFAULTS,
    instances: 8,
    walltime: "3:00:00",
    allocation: "jvb-000-aa",
    job_name: "digits, 8 workers",
    user_script_args: "--x $HOME",
    max_simultaneous_instances: 4,
    want_helios_k80: true,
  };
  expect(toRunArguments(script, flags, home)).toEqual([
    "run",
    "--instances=8",
    "--job=digits-8-workers",
    "--launcher=slurm",
    "--walltime=3:00:00",
    "--account=jvb-000-aa",
    "--max-simultaneous=4",
    "--constraint=k80",
    "--gpus=1",
    "--env=legion_job_name=digits, 8 workers",
    "--env=legion_debug=false",
    `--env=legion_script_path=${script}`,
    "--",
    ...["sh", "-c", 'exec "$@" --x $HOME', "legion", "python3", script],
  ]);
});

test("instances on this machine, where --debug asks for that or there is no batch system", () => {
  const flags = { ...DEFAULTS, debug: true, debug_devices: "gpu0" };
  expect(toRunArguments(script, flags, home)).toEqual([
    "run",
    "--instances=1",
    "--job=Unspecified",
    "--launcher=local",
    "--walltime=12:00:00",
    "--devices=gpu0",
    "--env=legion_job_name=[Unspecified]",
    "--env=legion_debug=true",
    `--env=legion_script_path=${script}`,
    ...["--", "python3", script],
  ]);
  const elsewhere = toRunArguments(script, { ...DEFAULTS, instances: 2 }, join(home, "plain"));
  expect(elsewhere).toContain("--launcher=local");
});
