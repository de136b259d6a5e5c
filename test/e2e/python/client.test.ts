// Runs the tests of the Python client, on the installed wheel, against real brokers and hosts.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("without a server it knows the library, arrays and errors", () =>
  runPytest("empty", [
    "test_layouts.py",
    "test_errors.py",
    "test_arrays.py",
    "test_documentation.py",
  ]));

test("makes every call, and refuses bad input", () =>
  runPytest("empty", ["test_client.py", "test_bad_input.py", "test_averaging.py"]));

test("agrees with numpy and with the shared vectors", () =>
  runPytest("empty", ["test_against_numpy.py", "test_vectors.py"]));

test("works in threads, forks and tasks, and ends calls at a signal", () =>
  runPytest("empty", ["test_threads.py", "test_processes.py", "test_aio.py"]));

test("takes tensors of PyTorch, also in workers of its loader", () =>
  runPytest("system", ["test_torch_arrays.py"]));
