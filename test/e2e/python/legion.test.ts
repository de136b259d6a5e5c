// Runs the tests of Legion's API: its calls, its extensions, and its examples on several workers.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("calls and extensions", () =>
  runPytest("system", ["test_legion.py", "test_legion_extensions.py"]));

test("examples", () => runPytest("system", ["test_legion_examples.py"]));
