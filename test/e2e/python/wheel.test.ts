// Runs the tests of the installed wheel, and of the server that the tests in Python share.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("in an empty environment", () => runPytest("empty", ["test_wheel.py", "test_serving.py"]));

test("in one that sees the modules of the system", () => runPytest("system", ["test_wheel.py"]));
