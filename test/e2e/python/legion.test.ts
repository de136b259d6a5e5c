// Runs the tests of Legion's API: its calls and its extensions, and its examples on several workers.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("calls, extensions and examples", () =>
  runPytest("system", ["test_legion.py", "test_legion_extensions.py", "test_legion_examples.py"]));
