// Runs the test that trains handwritten digits with PyTorch in several processes, and those of the PyTorch
// examples, each with its own server.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("the digits, and the examples", () =>
  runPytest("system", ["test_torch_digits.py", "test_torch_examples.py"]));
