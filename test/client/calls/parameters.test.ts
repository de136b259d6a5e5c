// Proves what a look-up of parameters promises: to resolve a list once, and what if others forget them meanwhile.
import { expect, onTestFinished, test } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { Parameters } from "../../../src/client/calls/parameters.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import { Session } from "../../../src/client/io/session.ts";
import { Requests } from "../../../src/client/wire/wire.ts";
import { type Fields, JobSubjects } from "../../../src/protocol/index.ts";
import { FakeWire } from "../../support/fake-wire.ts";

/** Of a job in which every parameter that is asked for is ready. */
class ReadySession extends Session {
  asked = 0;

  override async request(_verb: string, { names }: Fields): Promise<Fields> {
    this.asked += 1;
    const layout = { elements: 4, blockElements: 4, blocks: 1, firstShard: 0, shards: 1 };
    const firstNumber = 1;
    const declared = { dtype: "float32", shape: [4], config: {} };
    const info = { ...declared, epoch: 1, ready: true, layout, firstNumber };
    const parameters = (names as string[]).map((name) => ({ name, ...info }));
    return { state: "ready", epoch: 1, by: "", shards: 1, parameters, more: false, at: [] };
  }
}

function prepare(): { session: ReadySession; parameters: Parameters; deadline: Deadline } {
  const session = new ReadySession({
    requests: Requests.open(new FakeWire(), false),
    subjects: new JobSubjects("j"),
    trainer: "t",
    onEnded: () => {},
    onJoined: () => {},
    onHeld: () => {},
    onLost: () => {},
  });
  const positions = new Positions({ journalReplaced: () => {} });
  const parameters = new Parameters(session, positions, () => 1024 * 1024);
  const deadline = Deadline.start("push", { timeoutMs: 30_000 });
  onTestFinished(() => deadline.dispose());
  return { session, parameters, deadline };
}

test("a list of names given again is resolved once, until one of them is forgotten or another list is given", async () => {
  const { session, parameters, deadline } = prepare();
  const list = ["a", "b", "c"];
  const first = await parameters.require(list, deadline);
  expect(await parameters.waitFor(["a", "b", "c"], deadline)).toBe(first);
  // Four lists stay resolved.
  for (const name of ["a", "b", "c"]) await parameters.require([name], deadline);
  expect(await parameters.require(list, deadline)).toBe(first);
  expect(session.asked).toBe(1);

  list[1] = "c";
  const changed = await parameters.require(list, deadline);
  expect(changed.map(({ name }) => name)).toEqual(["a", "c", "c"]);
  expect(session.asked).toBe(1);

  parameters.forget("b");
  const again = await parameters.require(["a", "b", "c"], deadline);
  expect(again).not.toBe(first);
  expect(again.map(({ name }) => name)).toEqual(["a", "b", "c"]);
  expect(session.asked).toBe(2);
});

test("a parameter that is forgotten as soon as it is found is looked up again, so that each name gets its own", async () => {
  const { session, parameters, deadline } = prepare();
  const forget = async (): Promise<void> => {
    for (let moment = 0; moment < 100; moment++) {
      parameters.forget("a");
      await undefined;
    }
  };
  const [infos] = await Promise.all([parameters.require(["a", "b"], deadline), forget()]);
  expect(infos.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(session.asked).toBeGreaterThan(1);
});
