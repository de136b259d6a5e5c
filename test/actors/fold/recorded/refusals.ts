import { encodeMessage, type Fields } from "../../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../../src/protocol/dtypes.ts";
import { type InitInput, type PushInput, SHARD, SUBJECTS } from "../journal-writer.ts";
import type { SceneWriter } from "./scene-writer.ts";
import type { Scene } from "./scenes.ts";

const GRADIENT = { op: "grad" } as const;
const THREE = Float32Array.of(1, 2, 3);
const FOUR = Float32Array.of(1, 2, 3, 4);
const SUMS = { optimizer: "none" } as const;

/** Both sides of every condition that a record of a block is refused by. */
export const refusals: Scene = (writer) => {
  const { journal } = writer;
  journal.push(FOUR, GRADIENT, { trainer: "early", n: 1 });
  writer.rules();
  const init = (data: Float32Array | Int32Array, input: InitInput = {}): void => {
    writer.journal.declare(data, input);
    journal.init(data, input);
  };
  const push = (data: Float32Array | Int32Array, input: PushInput = {}): void => {
    journal.push(data, GRADIENT, input);
  };

  // Whether a block may be made.
  push(FOUR);
  init(FOUR, { config: SUMS, epoch: 2 });
  journal.init(FOUR, { config: SUMS, epoch: 2 });
  journal.init(FOUR, { config: SUMS, epoch: 1 });
  init(FOUR, { config: SUMS, epoch: 3 });
  init(FOUR, { parameter: "cut", index: 1, shape: [10], start: 4, config: SUMS });
  journal.init(FOUR, { parameter: "cut", index: 0, shape: [10], start: 4, config: SUMS });
  journal.init(THREE, { parameter: "cut", index: 1, shape: [10], start: 4, config: SUMS });
  journal.init(FOUR, { parameter: "cut", index: 2, shape: [10], start: 6, config: SUMS });
  const rows = { parameter: "rows", shape: [3, 2], config: { ...SUMS, sparse: true } };
  journal.init(THREE, { ...rows, start: 0, count: 3 });
  init(Float32Array.of(1, 2, 3, 4, 5, 6), rows);
  init(Float32Array.of(1, Number.NaN), { parameter: "nan", config: SUMS });
  journal.init(Float32Array.of(1, 2), { parameter: "nan", config: SUMS });
  init(Float32Array.of(1, Number.NaN, 3), {
    parameter: "any",
    config: { ...SUMS, allowNonFinite: true },
  });

  // Whether a record fits its block.
  const w = { epoch: 3 };
  push(FOUR, w);
  push(FOUR, { epoch: 2 });
  push(FOUR, { epoch: 4 });
  push(THREE, w);
  push(Int32Array.of(1, 2, 3, 4), w);
  journal.set(FOUR, w);
  journal.set(THREE, w);
  journal.set(Float32Array.of(1, 2, 3, Number.POSITIVE_INFINITY), w);
  init(FOUR, { parameter: "fixed", config: { static: true } });
  push(FOUR, { parameter: "fixed" });
  journal.set(FOUR, { parameter: "fixed" });

  // Elements and norms that are not finite.
  push(Float32Array.of(1, 2, Number.NaN, 4), { ...w, norm: 1 });
  push(FOUR, { ...w, norm: Number.NaN });
  push(FOUR, { ...w, norm: null });
  push(Float32Array.of(1, Number.NaN, 3), { parameter: "any", norm: Number.NaN });
  push(Float32Array.of(1, 2, 3, 70_000), { ...w, encoding: "float16" });
  push(Float32Array.of(1, 2, 3, 60_000), { ...w, encoding: "float16" });
  for (const encoding of ["int8", "e3m0"] as const) {
    push(Float32Array.of(1, 2, Number.POSITIVE_INFINITY, 4), { ...w, encoding, norm: 1 });
    push(FOUR, { ...w, encoding });
    push(THREE, { ...w, encoding });
    push(Float32Array.of(1, Number.NaN, 3), { parameter: "any", norm: Number.NaN, encoding });
  }

  // Parts.
  const one = Float32Array.of(5, 6);
  push(one, { parameter: "rows", part: { rows: Uint32Array.of(2) } });
  push(one, { parameter: "rows", part: { rows: Uint32Array.of(3) } });
  push(FOUR, { parameter: "rows", part: { rows: Uint32Array.of(1, 0) } });
  push(THREE, { parameter: "rows", part: { rows: Uint32Array.of(1) } });
  push(one, {
    parameter: "rows",
    part: { rows: Uint32Array.of(0, 1), inner: Uint32Array.of(1) },
  });
  push(one, { ...w, part: { rows: Uint32Array.of(0) } });
  const inner = { rows: Uint32Array.of(0), inner: Uint32Array.of(1, 3) };
  journal.push(one, { op: "mix", alpha: 0.5, beta: 2 }, { ...w, part: inner });
  const beyond = { rows: Uint32Array.of(0), inner: Uint32Array.of(1, 4) };
  journal.push(one, { op: "mix", alpha: 0.5, beta: 2 }, { ...w, part: beyond });

  // What the configuration takes.
  const config = { optimizer: "sgd", clipNorm: 2 } as const;
  init(FOUR, { parameter: "clipped", config });
  push(FOUR, { parameter: "clipped" });
  journal.push(FOUR, { op: "grad", lr: 0.5 }, { parameter: "clipped" });
  journal.push(FOUR, { op: "grad", lr: 0.5 }, { parameter: "clipped", norm: null });
  journal.push(FOUR, { op: "grad", lr: 0.5, seen: 2 }, { parameter: "clipped" });
  journal.push(FOUR, { op: "grad", lr: 0.5, seen: 9 }, { parameter: "clipped" });
  journal.push(FOUR, { op: "grad", lr: 0.5 }, w);
  journal.push(FOUR, { op: "grad", step: 1 }, w);
  init(FOUR, { parameter: "ftrl", config: { optimizer: "ftrl", learningRate: 0.1 } });
  journal.push(FOUR, { op: "grad", lr: 0 }, { parameter: "ftrl" });
  journal.push(FOUR, { op: "grad", lr: 0.1 }, { parameter: "ftrl" });
  const counts = Int32Array.of(1, 2, 3);
  init(counts, { parameter: "counts", config: SUMS });
  init(counts, { parameter: "scaled", config: { ...SUMS, gradientScale: 2 } });
  init(counts, { parameter: "ruled", config: { optimizer: "sgd", learningRate: 1 } });
  for (const parameter of ["counts", "scaled", "ruled"]) push(counts, { parameter });

  // Where the answer goes.
  push(FOUR, { ...w, reply: "" });
  push(FOUR, { ...w, reply: `${SUBJECTS.inbox("bob")}.1` });
  push(FOUR, { ...w, reply: `${SUBJECTS.inbox("alice")}.*` });
  push(FOUR, { ...w, reply: SUBJECTS.inbox("alice") });

  malformed(writer);
  numbers(writer);
  journal.clock("alice", 1);
};

/** Records of a trainer that are none, or whose entries are not what their verb asks for. */
function malformed({ journal }: SceneWriter): void {
  let n = 0;
  const send = (verb: "init" | "push" | "set", changes: Fields, data = bytesOf(FOUR)): void => {
    n += 1;
    const head = { session: 1, n, done: 0, reply: "", epoch: 3, dtype: "float32", op: "grad" };
    const place = { shape: [4], start: 0, count: 4, config: {} };
    const fields = { ...head, ...(verb === "init" ? place : {}), ...changes };
    const subject = SUBJECTS.log(SHARD, "raw", verb, "w", 0);
    journal.append(subject, encodeMessage(fields, data));
  };
  send("push", { epoch: 0 });
  send("push", { epoch: 1.5 });
  send("push", { dtype: "float8" });
  send("push", { encoding: "int4" });
  send("push", { encoding: "int8" });
  send("push", { encoding: "int8" }, Uint8Array.of(0, 0, 128, 63, 1, 2, 128, 4));
  send("push", { encoding: "int8" }, Uint8Array.of(0, 0, 128, 191, 1, 2, 3, 4));
  send("push", { encoding: "int8" }, Uint8Array.of(255, 255, 127, 127, 1, 2, 127, 4));
  send("push", { encoding: "e3m0" }, Uint8Array.of(0, 0, 128, 63, 0x21, 0x83));
  send("push", { encoding: "e3m0" }, Uint8Array.of(0, 0, 192, 255, 0x21, 0x03));
  send("push", { op: "add" });
  send("push", { op: "mix" });
  send("push", { op: "mix", alpha: Number.NaN, beta: 1 });
  send("push", { lr: Number.POSITIVE_INFINITY });
  send("push", { norm: "1" });
  send("push", { part: [0] });
  send("push", { seen: 0 });
  send("push", {}, new Uint8Array(0));
  send("push", {}, new Uint8Array(5));
  send("set", {}, new Uint8Array(0));
  send("init", { shape: [0] });
  send("init", { shape: [4, -1] });
  send("init", { start: 1 });
  send("init", { count: 5 });
  send("init", { config: { optimizer: "magic" } });
  send("init", { config: 5 });
  send("init", { shape: [5] });
  // Nobody can be answered.
  for (const changes of [{ session: 0 }, { n: 0 }, { done: 99 }, { reply: 5 }]) {
    send("push", changes);
  }
  const subject = SUBJECTS.log(SHARD, "raw", "push", "w", 0);
  journal.append(subject, new Uint8Array(40));
  journal.append(subject, new Uint8Array(0));
  journal.append(subject, encodeMessage({ long: "x".repeat(1_600) }));
  const intact = encodeMessage({ session: 1, n: 90, done: 0, reply: "" }, bytesOf(FOUR));
  journal.append(subject, intact.with(-1, 0x7f));
  journal.append(SUBJECTS.log(SHARD + 1, "raw", "push", "w", 0), intact);
  journal.append(`ps.${SUBJECTS.job}.log.${SHARD}.trainer.raw.pull.w.0`, intact);
  journal.append(`ps.${SUBJECTS.job}.log.${SHARD}.host.greet`, intact);
  for (const verb of ["drop", "declare", "sessions"]) {
    journal.append(`ps.${SUBJECTS.job}.log.${SHARD}.host.${verb}`, intact);
  }
  journal.append(SUBJECTS.hostLog(SHARD, "members"), encodeMessage({ revision: 0 }));
}

/** Numbers and sessions on both sides of what is taken. */
function numbers({ journal }: SceneWriter): void {
  const send = (session: number, n: number, done: number): void => {
    journal.push(FOUR, GRADIENT, { trainer: "carl", epoch: 3, session, n, done });
  };
  send(5, 1, 0);
  send(5, 1, 0);
  send(5, 1_024, 0);
  send(5, 1_025, 0);
  send(5, 1_026, 1);
  send(5, 1_025, 1);
  send(5, 1, 0);
  send(5, 3, 2);
  send(5, 2, 0);
  send(4, 1, 0);
  send(6, 1, 0);
  send(5, 4, 2);
  journal.host({ verb: "floor", session: 6 });
  send(6, 2, 1);
  send(7, 1, 0);
  journal.host({ verb: "floor", session: 3 });
  send(6, 3, 1);
  journal.host({ verb: "drop", parameter: "w", epoch: 2 });
  send(7, 2, 0);
  journal.host({ verb: "drop", parameter: "w", epoch: 3 });
  send(7, 3, 0);
}

/** The largest numbers that a trainer can write where it has been given none. */
export const extremes: Scene = (writer) => {
  const { journal } = writer;
  writer.rules({ mode: "ssp", trainers: 1, staleness: 0 });
  const most = Number.MAX_SAFE_INTEGER;
  const input = { config: SUMS };
  journal.init(FOUR, { ...input, parameter: "unheard", trainer: "eve" });
  writer.journal.declare(FOUR, input);
  journal.init(FOUR, { ...input, trainer: "eve", epoch: most });
  journal.init(FOUR, { ...input, epoch: 2 });
  journal.init(FOUR, input);
  journal.push(FOUR, GRADIENT, { trainer: "eve", session: most, n: most, done: most - 1 });
  journal.push(FOUR, GRADIENT, { trainer: "eve", session: 4 });
  journal.push(FOUR, GRADIENT, { epoch: most });
  journal.push(FOUR, { ...GRADIENT, seen: most });
  journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "eve"] });
  journal.clock("alice", most);
  journal.clock("alice", 1);
  journal.clock("alice", 1_025);
  journal.clock("alice", 1_026);
  journal.clock("alice", 2_050);
  journal.host({ verb: "members", revision: 2, started: true, trainers: ["alice"] });
  journal.clock("alice", 2_060);
  journal.host({ verb: "drop", parameter: "w", epoch: most });
  journal.init(FOUR, input);
};

/** What a shard holds at most, under small limits. */
export const limits: Scene = (writer) => {
  const { journal } = writer;
  writer.rules();
  const init = (data: Float32Array, input: InitInput): void => {
    writer.journal.declare(data, input);
    journal.init(data, { ...input, config: SUMS });
  };
  init(FOUR, { parameter: "a", config: SUMS });
  init(new Float32Array(13), { parameter: "b", config: SUMS });
  init(new Float32Array(11), { parameter: "c", config: SUMS });
  init(Float32Array.of(1), { parameter: "d", config: SUMS });
  init(Float32Array.of(1), { parameter: "e", config: SUMS });
  init(new Float32Array(4), { parameter: "a", epoch: 2, config: SUMS });
  journal.push(FOUR, GRADIENT, { trainer: "bob", parameter: "a", epoch: 2, session: 2 });
  journal.push(FOUR, GRADIENT, { trainer: "carl", parameter: "a", epoch: 2, session: 3 });
  journal.host({ verb: "floor", session: 1 });
  journal.push(FOUR, GRADIENT, { trainer: "carl", parameter: "a", epoch: 2, session: 3 });
};

/** Both sides of what a step asks of gradients and clocks. */
export function stepRefusals(synchronization: SynchronizationInput): Scene {
  return (writer) => {
    const { journal } = writer;
    writer.rules(synchronization);
    const input = { config: { optimizer: "sgd", learningRate: 1 } };
    writer.journal.declare(FOUR, input);
    journal.init(FOUR, input);
    const members = (revision: number, ...trainers: string[]): void => {
      journal.host({ verb: "members", revision, started: revision > 1, trainers });
    };
    const gradient = (trainer: string, step?: number, lr?: number): void => {
      journal.push(FOUR, { ...GRADIENT, step, lr }, { trainer });
    };
    gradient("alice", 1);
    journal.clock("alice", 1);
    members(1, "alice", "bob");
    gradient("alice");
    gradient("alice", 2);
    gradient("alice", 1);
    gradient("alice", 1);
    gradient("bob", 1, 0.5);
    journal.clock("alice", 1);
    journal.clock("bob", 1);
    members(2, "alice", "bob");
    gradient("alice", 1);
    gradient("alice", 2, 0.5);
    gradient("bob", 2);
    gradient("bob", 2, 0.5);
    journal.clock("alice", 2);
    journal.clock("bob", 2, "_INBOX_other.1");
    members(2, "alice");
    members(3, "bob", "carol");
    gradient("alice", 3);
    journal.clock("alice", 3);
    journal.clock("bob", 2);
    journal.clock("carol", 3);
    journal.clock("bob", 1);
    journal.clock("bob", 3);
    journal.clock("bob", 0);
    gradient("carol", 4);
  };
}

/** Both sides of every condition that a state from elsewhere is refused by, and updates that go on from it. */
export const restoredStates: Scene = (writer) => {
  const { journal } = writer;
  writer.rules();
  const init = (data: Float32Array, input: InitInput): void => {
    writer.journal.declare(data, input);
    journal.init(data, input);
  };
  const config = { optimizer: "adam", learningRate: 0.1 } as const;
  const falling = { schedule: "linear", rate: 1, a: 0.125, b: 0.25 } as const;

  // Updates of the past count: in the correction of Adam's averages, and in a learning rate that falls.
  init(FOUR, { parameter: "adam", config, updates: 5 });
  init(FOUR, { parameter: "falling", config: { learningRate: falling }, updates: 4 });
  init(FOUR, { parameter: "new", config, updates: 0 });
  journal.init(FOUR, { parameter: "far", config, updates: 2 ** 48 + 1 });
  init(FOUR, { parameter: "far", config, updates: 2 ** 48 });

  // Slots of the rule, each as long as the values.
  const adam = { parameter: "adam" };
  journal.setSlot(1, "float32", FOUR, adam);
  journal.setSlot(2, "float32", Float32Array.of(4, 3, 2, 1), adam);
  journal.setSlot(3, "float32", FOUR, adam);
  journal.setSlot(17, "float32", FOUR, adam);
  journal.setSlot(1, "float32", THREE, adam);
  journal.setSlot(1, "float64", FOUR, adam);
  journal.setSlot(1, "float32", Float32Array.of(1, 2, Number.NaN, 4), adam);
  journal.setSlot(1, "float32", FOUR, { ...adam, epoch: 2 });
  journal.setSlot(1, "float32", FOUR, { parameter: "falling" });
  init(FOUR, { parameter: "any", config: { ...config, allowNonFinite: true } });
  journal.setSlot(1, "float32", Float32Array.of(1, 2, Number.NaN, 4), { parameter: "any" });
  init(FOUR, { parameter: "fixed", config: { static: true } });
  journal.setSlot(1, "float32", FOUR, { parameter: "fixed" });

  // Counts of the rows of a sparse parameter.
  const rows = { parameter: "rows", shape: [3, 1], config: { ...config, sparse: true } };
  init(THREE, rows);
  journal.setSlot(3, "float32", Uint32Array.of(7, 0, 2), { parameter: "rows" });
  journal.setSlot(3, "float32", Uint32Array.of(7, 0), { parameter: "rows" });

  for (const parameter of ["adam", "falling", "new", "rows"]) {
    journal.push(parameter === "rows" ? THREE : FOUR, GRADIENT, { parameter });
  }
};
