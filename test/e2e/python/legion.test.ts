// Runs the tests of Legion's API: its calls and its extensions.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("calls and extensions", () =>
  runPytest("system", ["test_legion.py", "test_legion_extensions.py"]));
