// Proves that timers of the C library come due once, in their order, and not after they were cleared,
// whatever is set and cleared meanwhile: by chance, beside a list that is searched, under sanitizers.
import { afterAll, beforeAll, test } from "vitest";
import { runProgram } from "./running-program.ts";
import { BuiltLibrary, SANITIZED } from "./toolchain.ts";

let library: BuiltLibrary;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
});

afterAll(() => library?.remove());

test("timers come due in their order", async () => {
  await runProgram(await library.innerProgram("timers", "."));
});
