import { type Client, connect } from "../../src/client/index.ts";
import type { Encoding, Tensor } from "../../src/protocol/index.ts";
import { machineMs, serveAgent } from "../agent.ts";

/** Parameters of one shape, as a model is benchmarked. */
export interface Model {
  readonly prefix: string;
  readonly parameters: number;
  readonly shape: readonly number[];
}

/** What is measured: a push that mixes, a push of gradients, a pull, gradients and then a pull. */
export type Operation = "mix" | "grad" | "pull" | "step";

/** The operation of a trainer: on the first `parameters` of the model, or on all. */
export interface Task {
  readonly model: Model;
  readonly operation: Operation;
  readonly durationMs: number;
  readonly parameters?: number;
  /** Encoding of the elements of a step, both ways. */
  readonly encoding?: Encoding;
}

/** The result of one run of a trainer. */
export interface Done {
  readonly bytes: number;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Passes over the model at one time in {@link commands.run}: no pass waits for the end of another.
 */
const PASSES = 2;
/** Training steps at one time: a step ends before the next begins. */
const STEPS = 1;
const CREATED_AT_A_TIME = 8;
const TIMEOUT_MS = 100_000;

const commands = {
  async open({ url, job, trainer }: { url: string; job: string; trainer: string }): Promise<void> {
    client = await connect({ url, job, trainer, timeoutMs: 30_000 });
  },

  /** Creates the parameters of a model unless they exist. */
  async create(model: Model): Promise<void> {
    const tensor = { dtype: "float32", shape: model.shape, data: floats(model) } as const;
    const names = namesOf(model);
    const create = async (): Promise<void> => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const options = { timeoutMs: TIMEOUT_MS };
        await opened().createIfNotAlreadyCreated(name, tensor, { learningRate: 1e-3 }, options);
      }
    };
    await Promise.all(Array.from({ length: CREATED_AT_A_TIME }, create));
  },

  /** Sends one gradient of some rows, or of all, to a sparse parameter, which is created first. */
  async sendRows(task: { name: string; shape: readonly number[]; rows?: number[] }): Promise<void> {
    const { name, shape, rows } = task;
    const options = { timeoutMs: TIMEOUT_MS };
    const tensor = (count: number): Tensor => {
      const own = [count, ...shape.slice(1)];
      return { dtype: "float32", shape: own, data: floats({ shape: own }) };
    };
    const whole = tensor(shape[0] ?? 1);
    const config = { learningRate: 1e-3, sparse: true };
    await opened().createIfNotAlreadyCreated(name, whole, config, options);
    const gradient = rows === undefined ? whole : { rows, values: tensor(rows.length) };
    await opened().sendGrads({ [name]: gradient }, options);
  },

  /**
   * Makes passes over the model for so long, and waits for all of them. The first run of a task also
   * makes the tensors that the later ones use.
   */
  async run(task: Task): Promise<Done> {
    const { pass, bytes } = prepare(task);
    const startMs = machineMs();
    let passes = 0;
    await Promise.all(
      Array.from({ length: task.operation === "step" ? STEPS : PASSES }, async () => {
        do {
          await pass();
          passes += 1;
        } while (machineMs() - startMs < task.durationMs);
      }),
    );
    return { bytes: passes * bytes, startMs, endMs: machineMs() };
  },

  /** Makes one pass after the other for so long; returns the time of each, in ms. */
  async times(task: Task): Promise<number[]> {
    const { pass } = prepare(task);
    const times: number[] = [];
    const startMs = machineMs();
    while (times.length === 0 || machineMs() - startMs < task.durationMs) {
      const beginMs = machineMs();
      await pass();
      times.push(machineMs() - beginMs);
    }
    return times;
  },

  async close(): Promise<void> {
    await client?.close();
  },
};

export type Trainer = typeof commands;

let client: Client | undefined;
let tensors: Tensors | undefined;

function opened(): Client {
  if (client === undefined) throw new Error("not open");
  return client;
}

/** Prepares one pass over the parameters of a task, and counts the bytes that it moves. */
function prepare(task: Task): { pass: () => Promise<unknown>; bytes: number } {
  const { model, operation } = task;
  const names = namesOf(model).slice(0, task.parameters);
  const { data } = tensorsOf(model);
  const bytes = names.length * data.byteLength;
  const options = { timeoutMs: TIMEOUT_MS };
  const ps = opened();
  if (operation === "pull") {
    const targets = targetsOf(model);
    let turn = 0;
    const pass = (): Promise<unknown> => {
      const into = targets[turn++ % targets.length] ?? {};
      return ps.getParams(names, { ...options, into });
    };
    return { bytes, pass };
  }
  const tensor = { dtype: "float32", shape: model.shape, data } as const;
  const grads = new Map(names.map((name) => [name, tensor]));
  if (operation === "grad") return { bytes, pass: () => ps.sendGrads(grads, options) };
  if (operation === "step") {
    const { encoding } = task;
    const both = encoding === undefined ? options : { ...options, encoding };
    const [into = {}] = targetsOf(model);
    const pass = async (): Promise<void> => {
      await ps.sendGrads(grads, both);
      await ps.getParams(names, { ...both, into });
    };
    return { bytes: 2 * bytes, pass };
  }
  const pass = (): Promise<unknown> =>
    Promise.all(names.map((name) => ps.pushFull(name, tensor, 1, 1e-3, options)));
  return { bytes, pass };
}

/**
 * The tensors of a training loop: a gradient, the same for all parameters, and those that its pulls
 * read into.
 */
interface Tensors {
  readonly prefix: string;
  readonly data: Float32Array;
  /** The tensors that pulls read into, made for the first pull. */
  readonly targets: Record<string, Float32Array>[];
}

/**
 * Makes the tensors of a model. Those of the last one asked for are kept: making 40 MB of them
 * takes a quarter of a second, which is not the client's.
 */
function tensorsOf(model: Model): Tensors {
  if (tensors?.prefix !== model.prefix) {
    tensors = { prefix: model.prefix, data: floats(model), targets: [] };
  }
  return tensors;
}

/** Makes the tensors that the pulls of a model read into, one after the other. */
function targetsOf(model: Model): Record<string, Float32Array>[] {
  const { targets } = tensorsOf(model);
  while (targets.length < PASSES) {
    const arrays = namesOf(model).map((name) => [
      name,
      new Float32Array(elementsOf(model)).fill(1),
    ]);
    targets.push(Object.fromEntries(arrays));
  }
  return targets;
}

function namesOf({ prefix, parameters }: Model): string[] {
  return Array.from({ length: parameters }, (_, i) => `${prefix}.${i}`);
}

function elementsOf({ shape }: Pick<Model, "shape">): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Makes small values of both signs, none of them denormal. */
function floats({ shape }: Pick<Model, "shape">): Float32Array {
  const data = new Float32Array(elementsOf({ shape }));
  for (let i = 0; i < data.length; i++) data[i] = (((i * 2_654_435_761) % 2_001) - 1_000.5) / 1e6;
  return data;
}

serveAgent(commands);
