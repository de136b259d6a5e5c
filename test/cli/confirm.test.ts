// Proves that only an explicit yes of a person counts as yes: any other answer, the end of the input and
// Ctrl-C change nothing, and where nobody can be asked the command says so.
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { confirm } from "../../src/cli/context.ts";
import { PserverError } from "../../src/protocol/errors.ts";

function terminal(isTTY = true) {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const controller = new AbortController();
  const { signal } = controller;
  const context = { stdin, stdout, stderr, environment: {}, signal, setExitCode: () => undefined };
  return { stdin, stderr, controller, context };
}

test.each([
  ["y\n", true],
  ["Yes\n", true],
  [" yes \n", true],
  ["\n", false],
  ["n\n", false],
  ["yesterday\n", false],
])("the answer %j counts as %s", async (answer, expected) => {
  const { stdin, stderr, context } = terminal();
  const asked = confirm(context, "Really?");
  stdin.write(answer);
  expect(await asked).toBe(expected);
  expect(String(stderr.read())).toBe("Really? [y/N] ");
});

test("the end of the input is no", async () => {
  const { stdin, context } = terminal();
  const asked = confirm(context, "Really?");
  stdin.end();
  expect(await asked).toBe(false);
});

test("Ctrl-C ends the question with its reason", async () => {
  const { controller, context } = terminal();
  const asked = confirm(context, "Really?");
  controller.abort(new PserverError("ABORTED", "interrupted by SIGINT"));
  await expect(asked).rejects.toMatchObject({ code: "ABORTED" });
});

test("without a terminal nobody is asked, and the error names --yes", async () => {
  const { stdin, stderr, context } = terminal(false);
  stdin.write("y\n");
  await expect(confirm(context, "Really?")).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("--yes"),
  });
  expect(stderr.read()).toBeNull();
});
