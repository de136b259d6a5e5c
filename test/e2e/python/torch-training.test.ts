// Runs what trains with PyTorch in several processes: handwritten digits, and the examples.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("the digits and the examples", () =>
  runPytest("system", ["test_torch_digits.py", "test_torch_examples.py"]));
