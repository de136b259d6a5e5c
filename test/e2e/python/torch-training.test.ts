// Runs the test that trains handwritten digits with PyTorch in several processes, and those of the PyTorch
// examples, of the example of Decoupled DiLoCo, and of the examples in the guides, each with its own server.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("the digits, the examples, and those in the guides", () =>
  runPytest("system", [
    "test_torch_digits.py",
    "test_torch_examples.py",
    "test_torch_diloco_example.py",
    "test_guides.py",
  ]));
