import { encodeMessage } from "../../../../src/protocol/codec.ts";
import { toConfig } from "../../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../../src/protocol/dtypes.ts";
import { type InitInput, SHARD, SUBJECTS } from "../journal-writer.ts";
import type { Scene } from "./scenes.ts";

const ONE = { op: "mix", alpha: 1, beta: 1 } as const;
const TWO = Float32Array.of(1, 2);

/** What is asked of an `init`: both sides of every condition. */
export const declarations: Scene = (writer) => {
  const { journal } = writer;
  const wide: InitInput = { parameter: "wide", index: 1, shape: [3, 2], start: 2, count: 2 };
  journal.declare(TWO, wide);
  writer.rules();
  journal.init(TWO, wide);
  journal.declare(TWO, wide);
  journal.init(TWO, { ...wide, epoch: 2 });
  journal.init(TWO, { ...wide, trainer: "bob" });
  journal.init(Int32Array.of(1, 2), wide);
  journal.init(TWO, { ...wide, shape: [2, 3] });
  journal.init(TWO, { ...wide, shape: [6] });
  journal.init(Float32Array.of(1), { ...wide, count: 1 });
  journal.init(TWO, { ...wide, index: 2, start: 4 });
  journal.init(TWO, { ...wide, index: 3, start: 0 });
  journal.init(TWO, { ...wide, config: { optimizer: "adam" } });
  journal.init(Float32Array.of(1, Number.NaN), wide);
  journal.init(TWO, wide);
  journal.init(TWO, wide);
  journal.push(TWO, ONE, { ...wide, trainer: "bob" });
  // Lower and equal epochs say nothing; a higher one changes who may, and what.
  journal.declare(TWO, { ...wide, trainer: "bob" });
  journal.declare(TWO, { ...wide, trainer: "bob", epoch: 3, config: { optimizer: "adam" } });
  journal.declare(TWO, { ...wide, epoch: 2 });
  journal.init(TWO, { ...wide, epoch: 2 });
  journal.push(TWO, ONE, wide);
  journal.init(TWO, { ...wide, trainer: "bob", epoch: 3, config: { optimizer: "adam" } });
  journal.push(TWO, ONE, wide);
  journal.push(TWO, ONE, { ...wide, epoch: 3 });
  journal.host({ verb: "drop", parameter: "wide", epoch: 2 });
  journal.push(TWO, ONE, { ...wide, epoch: 3 });
  journal.host({ verb: "drop", parameter: "wide", epoch: 3 });
  journal.init(TWO, { ...wide, trainer: "bob", epoch: 3, config: { optimizer: "adam" } });
  // Granted with layouts that fit their shards, but not their shapes or rows.
  const layout = { blockElements: 3, firstShard: 2, shards: 4 };
  const odd = (parameter: string, shape: number[], elements: number, sparse: boolean): void => {
    const config = { sparse };
    const blocks = Math.ceil(elements / 3);
    journal.host({
      verb: "declare",
      trainer: "alice",
      parameters: [
        {
          ...{ name: parameter, dtype: "float32", shape, config: toConfig(config), epoch: 1 },
          layout: { ...layout, elements, blocks },
        },
      ],
    });
    const count = Math.min(3, elements - 3);
    journal.init(new Float32Array(count), { parameter, index: 1, shape, start: 3, count, config });
  };
  odd("short", [6], 5, false);
  odd("split", [3, 2], 6, true);
  odd("even", [6], 6, false);
  // Not one that anybody can read.
  const subject = SUBJECTS.hostLog(SHARD, "declare");
  journal.append(subject, encodeMessage({ trainer: "a" }, new Uint8Array([0xc1])));
  journal.append(subject, encodeMessage({ trainer: "a" }, new Uint8Array([0x91, 0x80])));
  // A parameter that the shard has no part of, and one without any before it.
  journal.declare(TWO, { parameter: "a", epoch: 9 });
  journal.declare(TWO, { parameter: "A", epoch: 9 });
  journal.init(TWO, { parameter: "a", epoch: 9 });
};

/** What hosts tell of initializations: later and earlier ones, under the declared epochs and others. */
export const initializations: Scene = (writer) => {
  const { journal } = writer;
  writer.rules();
  journal.declare(TWO);
  journal.declare(TWO, { parameter: "own", epoch: 3 });
  const ready = (epoch: number, revised: number, parameters: readonly [string, number][]): void => {
    journal.host({ verb: "ready", job: { epoch, revised, session: 7 }, parameters });
  };
  ready(2, 1, []);
  ready(3, 1, [["own", 2]]);
  ready(9, 0, []);
  ready(1, 1, []);
  ready(2, 1, [["other", 1]]);
  ready(1, 2, []);
  journal.host({
    verb: "ready",
    parameters: [
      ["own", 3],
      ["w", 1],
    ],
  });
  // It creates no block, and an init goes on to be asked for its grant.
  journal.init(TWO, { parameter: "own", epoch: 2 });
  journal.init(TWO, { parameter: "own", epoch: 3 });
  journal.declare(TWO, { epoch: 2 });
  journal.host({ verb: "ready", parameters: [["w", 1]] });
  journal.host({ verb: "drop", parameter: "own", epoch: 3 });
  journal.host({ verb: "ready", parameters: [["own", 3]] });
  const subject = SUBJECTS.hostLog(SHARD, "ready");
  journal.append(subject, encodeMessage({}, new Uint8Array([0xc1])));
  journal.append(subject, encodeMessage({}, new Uint8Array([0x91, 0x92, 0xa1, 0x77, 0x00])));
  const job = { epoch: 0, revised: 9, session: 9 };
  journal.append(subject, encodeMessage({ job }, new Uint8Array([0x90])));
  journal.init(TWO, { epoch: 2 });
};

/** Sessions that hosts end one by one. */
export const sessions: Scene = (writer) => {
  const { journal } = writer;
  writer.rules();
  journal.declare(TWO);
  journal.init(TWO, { session: 2 });
  const push = (trainer: string, session: number, n: number, done = 0): void => {
    journal.push(TWO, ONE, { trainer, session, n, done });
  };
  for (const session of [1, 3, 4, 5, 9]) push(`t${session}`, session, 1);
  journal.host({ verb: "sessions", upTo: 4, live: [2, 4] });
  for (const session of [1, 3, 4, 5, 9]) push(`t${session}`, session, 1);
  push("t4", 4, 2);
  push("t3", 3, 2);
  push("new", 2, 1);
  push("new", 6, 1);
  push("new", 2, 2);
  // Written before and come later: it ends nothing twice and brings nothing back.
  journal.host({ verb: "sessions", upTo: 3, live: [3] });
  push("t3", 3, 3);
  push("t4", 4, 3);
  journal.init(TWO, { session: 2, epoch: 2 });
  journal.host({ verb: "sessions", upTo: 9, live: [3, 4, 9] });
  for (const session of [3, 4, 5, 9]) push(`t${session}`, session, 4);
  journal.host({ verb: "sessions", upTo: 9, live: [9] });
  push("t4", 4, 5);
  push("t9", 9, 5);
  journal.host({ verb: "floor", session: 9 });
  push("t9", 9, 6);
  push("t10", 10, 1);
  const subject = SUBJECTS.hostLog(SHARD, "sessions");
  journal.append(subject, encodeMessage({ upTo: 20 }, new Uint8Array([0x91, 0x15])));
  journal.append(subject, encodeMessage({ upTo: 0 }, new Uint8Array([0x90])));
  push("t10", 10, 2);
};

/** Trainers that hosts have forgotten, under a table of four. */
export const forget: Scene = (writer) => {
  const { journal } = writer;
  const most = Number.MAX_SAFE_INTEGER;
  writer.rules();
  journal.declare(TWO);
  journal.init(TWO, { session: 2 });
  const push = (trainer: string, session: number, n: number, done = 0): void => {
    journal.push(TWO, ONE, { trainer, session, n, done });
  };
  push("x", most, 1);
  push("y", most - 1, 1);
  push("z", 2, 1);
  push("bob", 3, 1);
  // Only with the very session.
  const others = [most - 1, 1, 2].map((session) => ["x", session] as const);
  journal.host({ verb: "forget", trainers: others });
  push("x", 3, 1);
  push("bob", 3, 1);
  journal.host({
    verb: "forget",
    trainers: [
      ["x", most],
      ["z", 2],
      ["nobody", 2],
    ],
  });
  push("bob", 3, 1);
  push("alice", 2, 2);
  push("alice", 2, 1);
  // What was forgotten has not ended: it comes as for the first time, and what it named is free again.
  push("x", most, 1);
  push("x", most, 1);
  push("carl", 4, 1);
  journal.host({ verb: "forget", trainers: [["x", most]] });
  push("x", 3, 1);
  push("carl", 4, 1);
  // A session that has ended does not come back by being forgotten.
  journal.host({ verb: "sessions", upTo: 3, live: [2] });
  journal.host({ verb: "forget", trainers: [["bob", 3]] });
  push("bob", 3, 1);
  const subject = SUBJECTS.hostLog(SHARD, "forget");
  for (const bytes of [[0xc1], [0x91, 0x91, 0xa1, 0x61], [0x91, 0x92, 0xa0, 0x01], []]) {
    journal.append(subject, encodeMessage({}, new Uint8Array(bytes)));
  }
  journal.append(subject, encodeMessage({}, new Uint8Array([0x91, 0x92, 0xa1, 0x61, 0x00])));
  journal.host({ verb: "forget", trainers: [] });
  push("y", most - 1, 2);
};

/** Clocks that are as far ahead as one may be, and further. */
export const clocks: Scene = (writer) => {
  const { journal } = writer;
  writer.rules({ mode: "ssp", trainers: 2, staleness: 1 });
  journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "bob"] });
  for (const step of [1_025, 1_024, 2_049, 2_048]) journal.clock("alice", step);
  for (const step of [1_025, 1_024]) journal.clock("bob", step);
  // It may be as far ahead of the last closed step, though it has sent no clock before.
  journal.host({ verb: "members", revision: 2, started: true, trainers: ["bob", "carol"] });
  for (const step of [2_049, 2_048]) journal.clock("carol", step);
  journal.clock("bob", 2_048);
  journal.host({ verb: "members", revision: 3, started: true, trainers: ["carol", "dave"] });
  for (const step of [3_073, 3_072]) journal.clock("dave", step);
};

/** Records that are of no use, under small limits. */
export const waste: Scene = (writer) => {
  const { journal } = writer;
  writer.rules();
  journal.declare(TWO);
  journal.declare(TWO, { parameter: "second" });
  journal.declare(TWO, { parameter: "third" });
  journal.init(TWO);
  journal.init(TWO, { parameter: "third" });
  journal.init(TWO, { parameter: "second", trainer: "bob" });
  const push = (epoch: number, session = 1, done = 0): void => {
    journal.push(TWO, ONE, { epoch, session, done });
  };
  push(2);
  push(1);
  for (let i = 0; i < 4; i++) push(2);
  push(1);
  journal.push(TWO, ONE, { n: 2 });
  journal.push(TWO, ONE, { n: 2_000 });
  push(1, 2);
  push(1, 1);
  // One rejected batch makes more work than two small records: its header alone counts 2.
  const config = { optimizer: "none" };
  journal.batch(
    Array.from({ length: 12 }, (_, i) => {
      const parameter = `${"unknown".repeat(8)}${i}`;
      return { parameter, data: TWO, change: { kind: "init", shape: [2], config } };
    }),
    { session: 2 },
  );
  push(1, 2);
  journal.host({ verb: "end", trainer: "alice", session: 2 });
  push(1, 2);
  push(1, 3);
  for (const trainer of ["bob", "carl", "bob"]) {
    journal.append(SUBJECTS.log(SHARD, trainer, "push", "w", 0), bytesOf(TWO));
    journal.append(SUBJECTS.clock(SHARD, trainer), encodeMessage({ session: "none" }));
  }
};
