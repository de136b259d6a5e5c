// Runs the test of the PyTorch examples, each with its own server.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("the examples", () => runPytest("system", ["test_torch_examples.py"]));
