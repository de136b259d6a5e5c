// Runs the tests of the Python client with tensors of PyTorch, on the installed wheel.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("takes tensors of PyTorch, also in workers of its loader", () =>
  runPytest("system", ["test_torch_arrays.py"]));
