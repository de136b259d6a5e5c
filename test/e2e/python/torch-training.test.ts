// Runs the test that trains handwritten digits with PyTorch in several processes.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("the digits", () => runPytest("system", ["test_torch_digits.py"]));
