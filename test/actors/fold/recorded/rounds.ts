import { Random } from "../../../../examples/digits/random.ts";
import type { DilocoSettings, ParameterSettings } from "../../../../src/protocol/config/index.ts";
import type { Encoding } from "../../../../src/protocol/dtypes.ts";
import type { Contribution } from "../../../../src/protocol/messages/contributions.ts";
import type { ContributedBlock } from "../fragments/contribution-payload.ts";
import type { SceneWriter } from "./scene-writer.ts";
import type { Scene } from "./scenes.ts";

const random = new Random(6262);

function floats(count: number): Float32Array {
  return Float32Array.from({ length: count }, () => random.normal());
}

const PARAMETERS: readonly (readonly [string, Float32Array | Float64Array, ParameterSettings])[] = [
  ["dense", floats(300), { optimizer: "nesterov", learningRate: 0.7 }],
  ["double", Float64Array.from(floats(7)), { optimizer: "adam", learningRate: 0.1, clipValue: 2 }],
  ["emb", floats(12), { optimizer: "nesterov", learningRate: 0.7, merge: "mean" }],
];

/** What a contribution has for all parameters; float32 in an encoding. */
function blocks(encoding?: Encoding): ContributedBlock[] {
  return PARAMETERS.map(([parameter, { length }]) => {
    if (parameter === "double") return { parameter, data: Float64Array.from(floats(length)) };
    return { parameter, data: floats(length), ...(encoding === undefined ? {} : { encoding }) };
  });
}

function begin(writer: SceneWriter, settings: Partial<DilocoSettings>): void {
  writer.rules({ mode: "diloco", ...settings });
  for (const [parameter, data, config] of PARAMETERS) {
    writer.init(parameter, data, { ...config, fragment: "f" });
  }
  writer.init("free", floats(4), { learningRate: 0.5 });
  const trainers = ["alice", "bob", "carol"];
  writer.journal.host({ verb: "members", revision: 1, started: true, trainers });
}

/** Rounds of contributions in all encodings, whole and in parts, late and twice, in a job with these settings. */
export function roundsScene(settings: Partial<DilocoSettings>): Scene {
  return (writer) => {
    begin(writer, settings);
    const { journal } = writer;
    let id = 0;
    const contribute = (
      trainer: string,
      said: Partial<Contribution>,
      encoding?: Encoding,
    ): void => {
      journal.contribute({ id: ++id, ...said }, blocks(encoding), { trainer });
    };
    const close = (round: number, contributions: number): void => {
      journal.host({ verb: "close", fragment: "f", round, contributions });
    };
    contribute("alice", { steps: 3, tokens: 100 });
    contribute("bob", { steps: 5, tokens: 700 }, "bfloat16");
    contribute("alice", { steps: 1, tokens: 1 });
    close(1, 3);
    close(1, 2);
    contribute("carol", { steps: 9, tokens: 50, form: "parameters" });
    contribute("carol", { steps: 9, tokens: 50 }, "int8");
    const [dense, ...others] = blocks("e3m0");
    const parts = { id: 100, base: 1, steps: 2, tokens: 30, parts: 2 };
    journal.contribute({ ...parts, part: 1 }, others, { trainer: "alice" });
    journal.contribute({ ...parts, part: 0 }, dense === undefined ? [] : [dense], {
      trainer: "alice",
    });
    contribute("bob", { base: 1, form: "parameters" }, "float16");
    close(2, 2);
    close(3, 0);
    journal.contribute({ ...parts, id: 101, base: 3, part: 1 }, others, { trainer: "alice" });
    writer.push({ parameter: "free", data: floats(4) });
    journal.host({ verb: "members", revision: 2, started: true, trainers: ["bob", "carol"] });
    contribute("alice", { base: 3 });
    contribute("bob", { base: 3 });
    writer.init("more", floats(3), { learningRate: 1, fragment: "f" });
    contribute("carol", { base: 3 });
    close(4, 1);
  };
}

/** Contributions that are wrong, and the side of each condition on which they are not. */
export const roundRefusals: Scene = (writer) => {
  begin(writer, { weights: "tokens2/steps" });
  const { journal } = writer;
  let id = 0;
  const send = (said: Partial<Contribution>, sent = blocks(), trainer = "alice"): void => {
    journal.contribute({ id: ++id, ...said }, sent, { trainer });
  };
  send({}, blocks(), "mallory");
  send({ fragment: "g" });
  send({ base: 1 });
  send({ steps: 0 });
  send({ tokens: 0 });
  send({}, blocks().slice(1));
  send({}, [...blocks(), ...blocks().slice(2)]);
  send({}, [...blocks(), { parameter: "free", data: floats(4) }]);
  send({}, [{ parameter: "dense", data: floats(299) }, ...blocks().slice(1)]);
  send({}, [{ parameter: "dense", data: floats(300).fill(Number.NaN) }, ...blocks().slice(1)]);
  send(
    {},
    blocks().map((block) => ({ ...block, lr: 1 })),
  );
  send({ parts: 2, part: 0 }, blocks().slice(1));
  send({ id, parts: 2, part: 0 }, blocks().slice(1));
  send({ parts: 2, part: 0 }, blocks().slice(1));
  send({ id: id - 1, parts: 2, part: 1 }, blocks().slice(0, 1));
  send({ id, parts: 2, part: 1, tokens: 7 }, blocks().slice(0, 1));
  writer.push({ parameter: "dense", data: floats(300) });
  writer.clock("alice", 1);
  send({ steps: 1, tokens: 1 });
};

/** Parts of contributions for which there is room, and those for which there is not. */
export const openContributions: Scene = (writer) => {
  begin(writer, {});
  const parts = { id: 1, parts: 2 };
  for (const trainer of ["alice", "bob"]) {
    const [dense, ...others] = blocks();
    const first = dense === undefined ? [] : [dense];
    writer.journal.contribute({ ...parts, part: 0 }, first, { trainer });
    writer.journal.contribute({ ...parts, part: 1 }, others, { trainer });
    writer.journal.contribute({ ...parts, id: 2, part: 0 }, first, { trainer });
  }
};

/** Rounds of two to eight trainers in all encodings, one of which is far off. */
export function cohortScene(settings: Partial<DilocoSettings>): Scene {
  return (writer) => {
    begin(writer, settings);
    const { journal } = writer;
    const trainers = Array.from({ length: 8 }, (_, i) => `t${i}`);
    journal.host({ verb: "members", revision: 2, started: true, trainers });
    const encodings = [undefined, "bfloat16", "float16", "int8", "e3m0"] as const;
    let id = 0;
    for (const [round, count] of [2, 3, 5, 8].entries()) {
      for (const [i, trainer] of trainers.slice(0, count).entries()) {
        const sent = blocks(encodings[(round + i) % encodings.length]);
        if (i === 1) for (const { data } of sent) (data as Float32Array).fill(6e4);
        const form = i % 3 === 0 ? "parameters" : "displacement";
        journal.contribute({ id: ++id, base: Math.max(0, round - (i % 2)), form }, sent, {
          trainer,
        });
      }
      journal.host({ verb: "close", fragment: "f", round: round + 1, contributions: 1 });
    }
  };
}

/** Contributions of those that were drawn for a round, and of others. */
export const sampledRounds: Scene = (writer) => {
  begin(writer, { sample: 0.5, late: "carry" });
  const { journal } = writer;
  const trainers = Array.from({ length: 6 }, (_, i) => `t${i}`);
  journal.host({ verb: "members", revision: 2, started: true, trainers });
  let id = 0;
  for (let round = 1; round <= 3; round++) {
    for (const trainer of trainers) {
      journal.contribute({ id: ++id, base: round - 1 }, blocks("int8"), { trainer });
    }
    journal.host({ verb: "close", fragment: "f", round, contributions: 1 });
    for (const trainer of trainers) {
      journal.contribute({ id: ++id, base: round - 1 }, blocks("int8"), { trainer });
    }
  }
};

/** Contributions that an open round has room for, whole and in parts, and those for which it has not. */
export const keptContributions: Scene = (writer) => {
  begin(writer, { merge: "median" });
  const { journal } = writer;
  for (const round of [1, 2]) {
    for (const [i, trainer] of ["alice", "bob", "carol", "alice"].entries()) {
      const [dense, ...others] = blocks();
      const id = 10 * round + i;
      const said = { id, base: round - 1 };
      if (i !== 1 || dense === undefined) {
        journal.contribute(said, blocks(), { trainer });
        continue;
      }
      journal.contribute({ ...said, part: 1, parts: 2 }, others, { trainer });
      journal.contribute({ ...said, part: 0, parts: 2 }, [dense], { trainer });
    }
    journal.host({ verb: "close", fragment: "f", round, contributions: 1 });
  }
};
