// Runs the tests of the installed wheel, and of the server that the tests in Python share; proves that
// the packages can be imported from the checkout, too.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { packageRoot } from "../../../src/broker/broker-config.ts";
import { findPython, TREE } from "../../support/find-python.ts";
import { runPytest } from "../../support/python.ts";

const run = promisify(execFile);

test("in an empty environment", () =>
  runPytest("empty", ["test_wheel.py", "test_serving.py", "test_main.py"]));

test("in one that sees the modules of the system", () => runPytest("system", ["test_wheel.py"]));

test("the packages are found in the checkout, with the library that make build left", async () => {
  const program = `
import legion, pserver
try:
    pserver.connect("nats://127.0.0.1:1", connect_timeout=0.1)
except ConnectionError:
    print("no connection")
print(pserver.__file__, legion.__file__)
print({line.split()[5] for line in open("/proc/self/maps") if "libpserver" in line})`;
  const { stdout } = await run(await findPython("numpy"), ["-B", "-c", program], {
    env: { PYTHONPATH: TREE },
  });
  const [said, files, libraries] = stdout.split("\n");
  expect(said).toBe("no connection");
  expect(files).toBe(`${join(TREE, "pserver/__init__.py")} ${join(TREE, "legion/__init__.py")}`);
  expect(libraries).toContain(`{'${join(packageRoot(), "build/lib/libpserver.so")}`);
});
