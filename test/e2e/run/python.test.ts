// Proves `pserver run` and `legion` with trainers in Python: an example from the checkout, a script with the installed
// wheel that crashes and comes back, and one line for a Python that lacks the package.
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { beforeEach, expect, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { EXIT } from "../../../src/cli/report-error.ts";
import { runProcess } from "../../cli/spawn-command.ts";
import { findPython, pythonOf, TREE } from "../../support/find-python.ts";
import { makeRunDirectory, type RunDirectory } from "../../support/run-command.ts";

const LEGION = join(packageRoot(), "dist/legion.js");
const DIGITS = join(packageRoot(), "examples/python/legion/digits.py");

let directory: RunDirectory;
beforeEach(async () => {
  directory = await makeRunDirectory();
  return () => directory.remove();
});

/** Where `python3` is this one. */
function pathWith(python: string): string {
  return `${dirname(python)}:${dirname(process.execPath)}:/usr/bin:/bin`;
}

test("legion starts an example of the checkout on several workers", async () => {
  const PATH = pathWith(await findPython("numpy"));
  const { code, stdout, stderr } = await runProcess([DIGITS, "--instances", "4", "--debug"], {
    cwd: directory.path,
    main: LEGION,
    environment: { PATH, PYTHONPATH: TREE, PYTHONDONTWRITEBYTECODE: "1" },
  });
  expect(stderr).toContain("ranks 0-3  ended well");
  expect(code).toBe(0);
  const accuracies = [...stdout.matchAll(/^\[\d\] accuracy (0\.\d+)$/gm)].map((match) => match[1]);
  expect(accuracies).toHaveLength(4);
  for (const accuracy of accuracies) expect(Number(accuracy)).toBeGreaterThan(0.85);
});

test("with the wheel a script that crashes comes back under its id; a sync job is saved as npz", async () => {
  const script = await directory.script(
    "train.py",
    `import os, pathlib
import numpy as np
import pserver

crashed = pathlib.Path("crashed")
with pserver.connect() as ps:
    if ps.begin_init():
        ps.init_param("w", np.zeros(3, np.float32), optimizer="sgd", learning_rate=1.0)
        ps.finish_init()
    for step in range(3):
        if os.environ["PSERVER_RANK"] == "1" and step == 1 and not crashed.exists():
            crashed.touch()
            1 / 0
        ps.send_grads({"w": -np.ones(3, np.float32)})
    print(os.environ["PSERVER_TRAINER"], "is done")
`,
  );
  const PATH = pathWith(await pythonOf("system"));
  const { code, stdout, stderr } = await runProcess(
    [
      ...["run", "-n", "2", "--shards", "1", "--sync", "sync", "--save", "out/model.npz"],
      ...["--", "python3", script],
    ],
    { cwd: directory.path, environment: { PATH, PYTHONPATH: "" } },
  );
  expect(stderr).toContain("[1] Traceback (most recent call last):\n");
  expect(stderr).toContain("[1] ZeroDivisionError: division by zero\n");
  expect(stderr).toContain("rank 1  ended well; it was started again 1 time\n");
  expect(code).toBe(0);
  expect(stdout.split("\n").sort()).toEqual(["", "[0] trainer-0 is done", "[1] trainer-1 is done"]);
  const saved = join(directory.path, "out", "model.npz");
  expect(stderr).toContain(`as npz: ${saved}\n`);
  const read = "import numpy, sys; print({**numpy.load(sys.argv[1])}['w'].shape)";
  const python = await findPython("numpy");
  expect((await promisify(execFile)(python, ["-c", read, saved])).stdout).toBe("(3,)\n");
});

/** What accelerate and torch.distributed look for, to find out whether they were launched together. */
const LOOK = `import os, sys
# Debian 13 builds PyTorch without libuv, which PyTorch asks for unless it is told not to.
os.environ["USE_LIBUV"] = "0"
import torch
import torch.distributed as dist
size = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE"]
several = int(os.environ.get("LOCAL_RANK", -1)) != -1 or any(int(os.environ.get(name, 1)) > 1 for name in size)
`;

/** Two trainers that run this program with PyTorch. */
async function withTorch(program: string, ...args: string[]): Promise<string[]> {
  const script = await directory.script("train.py", `${LOOK}${program}`);
  const python = await findPython("torch");
  const { code, stdout, stderr } = await runProcess(
    ["run", "-n", "2", "--shards", "1", "--restarts", "0", ...args, "--", python, script],
    { cwd: directory.path },
  );
  expect(stderr).not.toContain("Traceback");
  expect(code).toBe(0);
  return stdout.trim().split("\n").sort();
}

test("by default PyTorch and accelerate find no launch of several processes", async () => {
  const program = `
try:
    dist.init_process_group("gloo")
except ValueError as error:
    print(several, error)`;
  const [first, second] = await withTorch(program);
  expect(first).toMatch(/^\[0\] False .*environment variable RANK expected/);
  expect(second).toMatch(/^\[1\] False .*environment variable RANK expected/);
});

test("with --torch-env PyTorch's process group is of all trainers", async () => {
  const program = `
dist.init_process_group("gloo")
total = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(several, dist.get_rank(), dist.get_world_size(), total.tolist(), torch.get_num_threads())`;
  expect(await withTorch(program, "--torch-env")).toEqual([
    "[0] True 0 2 [3.0, 3.0] 1",
    "[1] True 1 2 [3.0, 3.0] 1",
  ]);
});

test("a Python without the package is one line, and nothing starts", async () => {
  const PATH = pathWith(await findPython("numpy"));
  const environment = { PATH, PYTHONPATH: "" };
  const options = { cwd: directory.path, main: LEGION, environment };
  const args = ["--instances", "2", "--debug", "--user_script_args", "--epochs 1"];
  const { code, stderr } = await runProcess([DIGITS, ...args], options);
  expect(stderr).toMatch(
    /^\S+ pserver: BAD_VALUE: .*digits\.py: .*pip install WHEEL, the file that make wheel builds.*\n$/,
  );
  expect(code).toBe(EXIT.invalidInput);
  expect(await readdir(directory.path)).not.toContain(".pserver");
});

test("arguments that no shell can read are one line", async () => {
  const args = [DIGITS, "--instances", "2", "--debug", "--user_script_args", "it's"];
  const { code, stderr } = await runProcess(args, { cwd: directory.path, main: LEGION });
  expect(stderr).toMatch(/--user_script_args: expected words as a shell reads them; received/);
  expect(code).toBe(EXIT.invalidInput);
});
