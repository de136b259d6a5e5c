import type { GuardInput, ParameterSettings } from "../../../../src/protocol/config/index.ts";
import type { SceneWriter } from "./scene-writer.ts";
import type { Scene } from "./scenes.ts";

const GUARDS: Readonly<Record<string, GuardInput>> = {
  rejecting: { deviations: 3, window: 5, warmup: 3 },
  clipping: { factor: 2, window: 4, warmup: 2, action: "clip", history: "cohort" },
  aside: { deviations: 2.5, window: 6, warmup: 2, action: "set-aside" },
};

/** Norms that hardly change, with a 0 and spikes. */
const NORMS = [1, 1.2, 0.9, 1.1, 40, 0, 1, 3, 900, 1.05, 2, 2.5, 3, 4];

function gradient(norm: number): Float32Array {
  return Float32Array.of(0.6 * norm, 0, 0.8 * norm, 0);
}

function begin(writer: SceneWriter, others: ParameterSettings = {}): void {
  for (const [parameter, guard] of Object.entries(GUARDS)) {
    const config = { optimizer: "sgd", learningRate: 0.5, ...others, guard } as const;
    writer.init(parameter, new Float32Array(4), config, [2, 2]);
  }
}

/** Gradients in records of their own, of some rows, encoded and in batches, by two trainers, of whom one leaves. */
export function guardsScene(writer: SceneWriter): void {
  writer.rules();
  begin(writer, { sparse: true, gradientScale: 2, clipNorm: 8 });
  NORMS.forEach((norm, i) => {
    const trainer = i % 4 === 1 ? "bob" : "alice";
    for (const parameter of Object.keys(GUARDS)) {
      const data = gradient(norm);
      if (i % 5 === 2) writer.push({ trainer, parameter, data, encoding: "bfloat16" });
      else if (i % 5 === 3) writer.push({ trainer, parameter, data, encoding: "int8" });
      else if (i % 5 < 2) writer.push({ trainer, parameter, data });
      else writer.push({ trainer, parameter, data: data.slice(0, 2), part: { rows: [1] } });
    }
    const change = { kind: "push", operation: { op: "grad" } } as const;
    const parameters = i % 3 === 0 ? ["clipping"] : Object.keys(GUARDS);
    writer.batch(
      parameters.map((parameter) => ({ parameter, data: gradient(norm / 2), change })),
      trainer,
    );
  });
  writer.journal.host({ verb: "end", trainer: "bob", session: 1 });
  writer.journal.host({ verb: "drop", parameter: "aside", epoch: 1 });
  writer.push({ parameter: "rejecting", data: gradient(1e4) });
}

/** Contributions to a fragment whose parameters have a guard each, in a job that merges in this way. */
export function guardedRoundsScene(merge: "mean" | "rda"): Scene {
  return (writer) => {
    writer.rules({ mode: "diloco", weights: "tokens", merge });
    begin(writer, { fragment: "f" });
    const trainers = ["alice", "bob"];
    writer.journal.host({ verb: "members", revision: 1, started: true, trainers });
    let version = 0;
    NORMS.forEach((norm, i) => {
      const own = Object.keys(GUARDS).map((parameter, place) => {
        return { parameter, data: gradient(place === i % 3 ? norm : 1) };
      });
      const said = { id: 2 * i + 1, base: version, steps: 1, tokens: 5 + i };
      writer.journal.contribute(said, own, { trainer: "alice" });
      const others = Object.keys(GUARDS).map((parameter) => ({ parameter, data: gradient(1.1) }));
      writer.journal.contribute({ ...said, id: 2 * i + 2 }, others, { trainer: "bob" });
      if (i % 4 === 3) return;
      version += 1;
      writer.journal.host({ verb: "close", fragment: "f", round: version, contributions: 1 });
    });
  };
}
