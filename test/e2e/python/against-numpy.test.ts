// Runs the tests that compare the Python client with numpy and with the shared vectors.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("agrees with numpy and with the shared vectors", () =>
  runPytest("empty", ["test_against_numpy.py", "test_vectors.py"]));
