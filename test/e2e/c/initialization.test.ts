// Proves that a C trainer may repeat the initialization of a parameter whose outcome it does not know,
// with the same values and no others, against a fake host that folds nothing for a time, under
// address and undefined behaviour sanitizers.
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { RunningProgram } from "../../c/running-program.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";
import { startTestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";

let library: BuiltLibrary;
let path: string;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
  path = await library.program("initialize");
});

afterAll(() => library?.remove());

async function start(): Promise<{ host: FakeHost; program: RunningProgram }> {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j" });
  onTestFinished(() => host.close());
  const program = new RunningProgram(path, [broker.url, "j"]);
  onTestFinished(() => program.kill());
  return { host, program };
}

test("an initialization whose outcome is unknown may be repeated with the same values", async () => {
  const { host, program } = await start();
  const unknown = async (what: string): Promise<void> => {
    host.stalled = true;
    let found = "";
    for (let timeoutMs = 1_500; found !== "OUTCOME_UNKNOWN"; timeoutMs *= 4) {
      found = await program.ask(`${what} ${timeoutMs}`);
      expect(["OUTCOME_UNKNOWN", "TIMEOUT", "NO_HOST"]).toContain(found);
    }
    host.stalled = false;
  };
  await unknown("init w 1");
  expect(await program.ask("init w 1 60000")).toBe("OK");
  expect(await program.ask("init w 1 60000")).toBe("ALREADY_INITIALIZED");
  await unknown("init x 1");
  expect(await program.ask("init x 2 60000")).toBe("ALREADY_INITIALIZED");
  expect(await program.ask("init x 1 60000")).toBe("ALREADY_INITIALIZED");
  await unknown("create y 3");
  expect(await program.ask("create y 3 60000")).toBe("OK");
  expect(await program.ask("finish")).toBe("OK");
  program.finish();
  await program.end();
});
