// Runs the tests of the Python client in threads, processes and tasks, on the installed wheel.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("works in threads, forks and tasks, and ends calls at a signal", () =>
  runPytest("empty", ["test_threads.py", "test_processes.py", "test_aio.py"]));
