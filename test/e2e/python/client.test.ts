// Runs the tests of the Python client's calls, on the installed wheel, against a real broker and hosts.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("makes every call, and refuses bad input", () =>
  runPytest("empty", [
    "test_client.py",
    "test_bad_input.py",
    "test_averaging.py",
    "test_known.py",
    "test_notes.py",
  ]));
