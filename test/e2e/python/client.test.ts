// Runs the tests of the Python client, on the installed wheel: of what it knows without a server, in comparison
// with numpy and the shared vectors, and of its calls against a real broker and hosts.
import { test } from "vitest";
import { runPytest } from "../../support/python.ts";

test("knows the library, agrees with numpy, makes every call, and refuses bad input", () =>
  runPytest("empty", [
    "test_layouts.py",
    "test_errors.py",
    "test_arrays.py",
    "test_documentation.py",
    "test_against_numpy.py",
    "test_stored_types.py",
    "test_client.py",
    "test_encodings.py",
    "test_bad_input.py",
    "test_averaging.py",
    "test_rounds.py",
    "test_flower.py",
    "test_diloco.py",
    "test_diloco_merge.py",
    "test_known.py",
    "test_notes.py",
    // The last one: it gives the job parameters of all names, of which some cannot be saved together.
    "test_vectors.py",
  ]));
