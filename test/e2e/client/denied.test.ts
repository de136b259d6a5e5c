// Proves that a broker's refusals are said as DENIED, at once instead of at the deadline, on a
// broker whose users have the permissions that a trainer needs, or lack some.
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";

let broker: TestBroker;
let host: FakeHost;

const TRAINER = (id: string, log: string): string => `{
  user: ${id}, password: pw
  permissions: {
    publish: [${log} "ps.j.block.*.*.${id}.pull", "ps.j.shard.*.${id}.outcome", "ps.j.lifecycle.${id}.*", "ps.j.control.${id}.*"]
    subscribe: ["_INBOX_j.${id}.>"]
  }
}`;

beforeAll(async () => {
  broker = await startTestBroker({
    extraConfig: `authorization { users: [
      { user: host, password: pw },
      ${TRAINER("writer", '"ps.j.log.*.trainer.writer.*.*.*",')}
      ${TRAINER("reader", "")}
    ] }`,
  });
  host = await startFakeHost({ url: broker.url, job: "j", user: "host", pass: "pw" });
});

afterAll(async () => {
  await host.close();
  await broker.remove();
});

const as = (user: string, trainer = user): Parameters<typeof connect>[0] => ({
  url: broker.url,
  job: "j",
  user,
  password: "pw",
  trainer,
});

test("wrong credentials, or a trainer id that is not the user's, are refused", async () => {
  await expect(connect({ ...as("writer"), password: "no" })).rejects.toMatchObject({
    code: "DENIED",
    message: expect.stringContaining("refuses the credentials"),
  });
  await expect(connect(as("reader", "writer"))).rejects.toMatchObject({ code: "DENIED" });
});

test("a trainer's permissions are enough, and a reader cannot write", async () => {
  await using writer = await connect(as("writer"));
  await using reader = await connect(as("reader"));
  await writer.createIfNotAlreadyCreated("w", Float32Array.of(1), { learningRate: 1 });
  await writer.sendGrads({ w: Float32Array.of(-1) });
  expect((await reader.pullFull("w")).data).toEqual(Float32Array.of(2));
  await expect(reader.sendGrads({ w: Float32Array.of(1) })).rejects.toMatchObject({
    code: "DENIED",
    message: expect.stringContaining("ps.j.log."),
  });
  expect((await writer.pullFull("w")).data).toEqual(Float32Array.of(2));
});
