// Runs the tests of the Python client that need no server, on the installed wheel.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("without a server it knows the library, arrays and errors", () =>
  runPytest("empty", [
    "test_layouts.py",
    "test_errors.py",
    "test_arrays.py",
    "test_documentation.py",
  ]));
