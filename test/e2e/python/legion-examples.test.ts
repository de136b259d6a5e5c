// Runs the test of Legion's examples on several workers.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("examples", () => runPytest("system", ["test_legion_examples.py"]));
