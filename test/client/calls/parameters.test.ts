// Proves what a look-up of parameters promises when others forget them at the same time.
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

test("a parameter that is forgotten as soon as it is found is looked up again, so that each name gets its own", async () => {
  const session = new ReadySession({
    requests: Requests.open(new FakeWire(), false),
    subjects: new JobSubjects("j"),
    trainer: "t",
    onEnded: () => {},
    onJoined: () => {},
    onHeld: () => {},
    onNobody: () => {},
    onLost: () => {},
  });
  const parameters = new Parameters(
    session,
    new Positions({ journalReplaced: () => {} }),
    () => 1024 * 1024,
  );
  const deadline = Deadline.start("push", { timeoutMs: 30_000 });
  onTestFinished(() => deadline.dispose());
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
