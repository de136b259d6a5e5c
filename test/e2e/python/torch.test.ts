// Runs the tests of PyTorch's part of the Python package, on the wheel and real servers.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("tensors, also in workers of a loader, modules, hooks, the optimizer and DiLoCo", () =>
  runPytest("system", [
    "test_torch_arrays.py",
    "test_torch_convert.py",
    "test_torch_modules.py",
    "test_torch_hooks.py",
    "test_torch_sync.py",
    "test_torch_optimizer.py",
    "test_torch_encodings.py",
    "test_torch_diloco.py",
    "test_torch_diloco_state.py",
  ]));
