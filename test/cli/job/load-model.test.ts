// Proves, with a client that only records, that a load sends every tensor once, small ones together, and then
// finishes, keeps bounded work at a time, refuses a job that has parameters before it sends anything, and
// stops at the first failure without finishing. The job's own save loads again, joined shards too.
import { describe, expect, test } from "vitest";
import { type LoadingClient, type LoadOptions, loadModel } from "../../../src/cli/commands/load.ts";
import type { TensorSource } from "../../../src/model-files/index.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import type { ParameterInfo } from "../../../src/protocol/messages/lifecycle-messages.ts";
import { type TensorLike, toTensor } from "../../../src/protocol/tensor.ts";

interface FakeOptions {
  readonly existing?: readonly Partial<ParameterInfo>[];
  readonly selected?: boolean;
  readonly state?: "initializing" | "ready";
  readonly failAt?: string;
}

class FakeClient {
  readonly sent = new Map<string, number[]>();
  readonly overwritten = new Map<string, number[]>();
  readonly configs = new Map<string, unknown>();
  calls = 0;
  atOnceMax = 0;
  finished = false;
  #atOnce = 0;
  readonly #options: FakeOptions;

  constructor(options: FakeOptions = {}) {
    this.#options = options;
  }

  async listParams(): Promise<ParameterInfo[]> {
    return (this.#options.existing ?? []) as ParameterInfo[];
  }

  async beginInit(): Promise<boolean> {
    return this.#options.selected ?? true;
  }

  async status(): ReturnType<LoadingClient["status"]> {
    return { state: this.#options.state ?? "ready", epoch: 1, by: "other", shards: 1, at: [] };
  }

  async initParams(...[tensors, configOf]: Parameters<LoadingClient["initParams"]>): Promise<void> {
    this.calls += 1;
    this.atOnceMax = Math.max(this.atOnceMax, ++this.#atOnce);
    await new Promise(setImmediate);
    this.#atOnce--;
    for (const [name, tensor] of tensors as ReadonlyMap<string, TensorLike>) {
      if (name === this.#options.failAt) throw new PserverError("NON_FINITE", name);
      this.sent.set(name, Array.from(toTensor(tensor).data, Number));
      if (typeof configOf === "function") this.configs.set(name, configOf(name));
    }
  }

  async setParams(tensors: Parameters<LoadingClient["setParams"]>[0]): Promise<void> {
    this.calls += 1;
    for (const [name, tensor] of tensors as ReadonlyMap<string, TensorLike>) {
      this.overwritten.set(name, Array.from(toTensor(tensor).data, Number));
    }
  }

  async finishInit(): Promise<void> {
    this.finished = true;
  }
}

function source(name: string, values: readonly number[]): TensorSource {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  return {
    header: { name, dtype: "float32", shape: [values.length] },
    async *chunks() {
      // Chunks may end inside an element.
      yield bytes.slice(0, 3);
      yield bytes.slice(3);
    },
  };
}

const sources = Array.from({ length: 50 }, (_, i) => source(`p${i}`, [i, i + 0.5]));

/** In 20 groups. */
const many = Array.from({ length: 20 * 256 }, (_, i) => source(`m${i}`, [i]));

const matrix = (name: string, rows: number[][]): TensorSource => ({
  ...source(name, rows.flat()),
  header: { name, dtype: "float32", shape: [rows.length, rows[0]?.length ?? 0] },
});

function options(onProgress: LoadOptions["onProgress"] = () => {}): LoadOptions {
  return {
    configs: new Map(),
    overwrite: false,
    metadata: {},
    timeoutMs: 40_000,
    signal: new AbortController().signal,
    onProgress,
  };
}

test("sends small tensors together, each with its configuration, and finishes", async () => {
  const client = new FakeClient();
  const configs = new Map([["p7", toConfig({ learningRate: 0.5 })]]);
  const loaded = await loadModel(client, sources, { ...options(), configs });
  expect(loaded).toEqual({ parameters: 50, bytes: 400, overwritten: false, restored: 0 });
  expect(client.sent.size).toBe(50);
  expect(client.sent.get("p7")).toEqual([7, 7.5]);
  expect(client.configs.get("p7")).toBe(configs.get("p7"));
  expect(client.configs.get("p8")).toEqual({});
  expect([client.finished, client.calls]).toEqual([true, 1]);
});

test("sends at most 1 MiB or 256 tensors together", async () => {
  const client = new FakeClient();
  const small = many.slice(0, 600);
  const halves = Array.from({ length: 4 }, (_, i) => source(`h${i}`, new Array(131_072).fill(i)));
  await loadModel(client, [...small, ...halves], options());
  expect(client.sent.size).toBe(604);
  // Two of 256, the other 88 with one half, two halves, and the last one.
  expect(client.calls).toBe(3 + 2);
});

test("sends large tensors several at a time, and tells what is done", async () => {
  const client = new FakeClient();
  const progress: number[] = [];
  const large = Array.from({ length: 20 }, (_, i) => source(`l${i}`, new Array(200_000).fill(i)));
  await loadModel(
    client,
    large,
    options((done) => progress.push(done)),
  );
  expect(client.sent.get("l7")?.slice(0, 2)).toEqual([7, 7]);
  expect(progress).toEqual(Array.from({ length: 20 }, (_, i) => (i + 1) * 800_000));
  expect(client.calls).toBe(20);
  expect(client.atOnceMax).toBeGreaterThan(1);
  expect(client.atOnceMax).toBeLessThanOrEqual(16);
});

test("refuses a job that has a parameter", async () => {
  const client = new FakeClient({ existing: [{ name: "w", ready: true }] });
  await expect(loadModel(client, sources, options())).rejects.toMatchObject({
    code: "ALREADY_INITIALIZED",
  });
  expect(client.sent.size).toBe(0);
});

test.each([
  ["ready", "ALREADY_INITIALIZED"],
  ["initializing", "NOT_SELECTED"],
] as const)("refuses a job that is %s", async (state, code) => {
  const client = new FakeClient({ selected: false, state });
  await expect(loadModel(client, sources, options())).rejects.toMatchObject({ code });
  expect(client.sent.size).toBe(0);
});

test("stops at a failure and does not finish", async () => {
  const client = new FakeClient({ failAt: "m3" });
  await expect(loadModel(client, many, options())).rejects.toMatchObject({ code: "NON_FINITE" });
  expect(client.finished).toBe(false);
  expect(client.sent.size).toBeLessThan(16 * 256);
});

test("an interrupt ends it before the next tensor", async () => {
  const client = new FakeClient();
  const controller = new AbortController();
  const interrupted = loadModel(client, many, {
    ...options(() => controller.abort(new PserverError("ABORTED", "interrupted"))),
    signal: controller.signal,
  });
  await expect(interrupted).rejects.toMatchObject({ code: "ABORTED" });
  expect(client.finished).toBe(false);
});

const ready = (name: string, more: Partial<ParameterInfo> = {}): Partial<ParameterInfo> => ({
  ...{ name, ready: true, dtype: "float32", shape: [2], config: toConfig() },
  ...more,
});
const all = sources.map(({ header }) => ready(header.name));

test("overwrites the values of a job that is initialized, and begins nothing", async () => {
  const client = new FakeClient({ existing: [...all, ready("other")] });
  const loaded = await loadModel(client, sources, { ...options(), overwrite: true });
  expect(loaded).toEqual({ parameters: 50, bytes: 400, overwritten: true, restored: 0 });
  expect(client.overwritten.get("p7")).toEqual([7, 7.5]);
  expect([client.overwritten.size, client.sent.size, client.finished]).toEqual([50, 0, false]);
});

test("initializes a job that is not, though it might overwrite", async () => {
  const client = new FakeClient();
  await loadModel(client, sources, { ...options(), overwrite: true });
  expect([client.overwritten.size, client.sent.size, client.finished]).toEqual([0, 50, true]);
});

test.each([
  ["UNKNOWN_PARAMETER", undefined],
  ["BAD_DTYPE", { dtype: "float64" }],
  ["BAD_SHAPE", { shape: [1, 2] }],
  ["STATIC", { config: toConfig({ static: true }) }],
] as const)("overwrites nothing where the last parameter is %s", async (code, more) => {
  const last = more === undefined ? [] : [ready("p49", more as Partial<ParameterInfo>)];
  const client = new FakeClient({ existing: [...all.slice(0, -1), ...last] });
  const loading = loadModel(client, sources, { ...options(), overwrite: true });
  await expect(loading).rejects.toMatchObject({ code, details: { parameter: "p49" } });
  expect(client.overwritten.size).toBe(0);
});

describe("tied weights, which a file holds once,", () => {
  // As save_model of safetensors writes them: the name that is left out, with the one that is written.
  const metadata = { format: "pt", embed: "a_head" };
  const overwriting = { ...options(), overwrite: true, metadata };

  test("overwrite the parameter that has another of their names", async () => {
    const client = new FakeClient({ existing: [ready("embed"), ready("w")] });
    await loadModel(client, [source("a_head", [1, 2]), source("w", [3, 4])], overwriting);
    expect([...client.overwritten]).toEqual([
      ["embed", [1, 2]],
      ["w", [3, 4]],
    ]);
  });

  test("keep their name where the job has it", async () => {
    const client = new FakeClient({ existing: [ready("a_head"), ready("embed")] });
    await loadModel(client, [source("a_head", [1, 2])], overwriting);
    expect([...client.overwritten]).toEqual([["a_head", [1, 2]]]);
  });

  test("never take the name of another tensor of the file", async () => {
    const client = new FakeClient({ existing: [ready("embed")] });
    const both = [source("a_head", [1, 2]), source("embed", [3, 4])];
    await expect(loadModel(client, both, overwriting)).rejects.toMatchObject({
      code: "UNKNOWN_PARAMETER",
      details: { parameter: "a_head" },
    });
  });
});

describe("a save has joined the sparse shards of a parameter", () => {
  const shards = [
    // As a job lists them: not in the order of their numbers.
    ready("a:sparse-1", { shape: [1, 2] }),
    ready("a:sparse-10", { shape: [1, 2] }),
    ...Array.from({ length: 8 }, (_, i) => ready(`a:sparse-${i + 2}`, { shape: [1, 2] })),
    ready("a:sparse-0", { shape: [2, 2] }),
  ];
  const rows = Array.from({ length: 12 }, (_, i) => [i, i + 0.5]);
  const load = (client: FakeClient, tensors: TensorSource[]) =>
    loadModel(client, tensors, { ...options(), overwrite: true });

  test("and each shard gets its rows back", async () => {
    const client = new FakeClient({ existing: [...shards, ready("w")] });
    const loaded = await load(client, [matrix("a", rows), source("w", [7, 8])]);
    expect(loaded).toEqual({ parameters: 12, bytes: 12 * 8 + 8, overwritten: true, restored: 0 });
    expect(client.overwritten.get("a:sparse-0")).toEqual([0, 0.5, 1, 1.5]);
    expect(client.overwritten.get("a:sparse-1")).toEqual([2, 2.5]);
    expect(client.overwritten.get("a:sparse-10")).toEqual([11, 11.5]);
    expect(client.overwritten.get("w")).toEqual([7, 8]);
  });

  test.each([
    ["BAD_SHAPE", shards, [matrix("a", rows.slice(1))]],
    [
      "BAD_DTYPE",
      shards.map((info) => ({ ...info, dtype: "float64" as const })),
      [matrix("a", rows)],
    ],
    ["MISSING_SHARD", shards.slice(1), [matrix("a", rows)]],
    [
      "STATIC",
      [ready("a:sparse-0", { shape: [12, 2], config: toConfig({ static: true }) })],
      [matrix("a", rows)],
    ],
    ["BAD_NAME", shards, [matrix("a", rows), matrix("a:sparse-1", [[1, 2]])]],
    ["UNKNOWN_PARAMETER", shards, [matrix("a:sparse", rows)]],
  ] as const)("but nothing is overwritten where it ends in %s", async (code, existing, tensors) => {
    const client = new FakeClient({ existing });
    await expect(load(client, [...tensors])).rejects.toMatchObject({ code });
    expect(client.overwritten.size).toBe(0);
  });
});
