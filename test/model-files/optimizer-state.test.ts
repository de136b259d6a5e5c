// Proves that a safetensors file gives back what optimizers keep as it was saved, apart from the parameters, and that a
// description that contradicts itself or the tensors is refused, whatever it claims.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openModel, saveModel } from "../../src/model-files/index.ts";
import { toConfig } from "../../src/protocol/config/index.ts";
import { codeOf, joinChunks, withDirectory } from "./sample-model.ts";

const ADAM = toConfig({ optimizer: "adam", learningRate: 0.1 });
const SPARSE = toConfig({ optimizer: "adagrad", sparse: true });

const PARAMETERS = [
  {
    name: "w",
    config: ADAM,
    blockElements: 4,
    updates: [5, 7, 6],
    slots: [1, 2].map(() => ({ dtype: "float32", shape: [10] }) as const),
  },
  {
    name: "rows:sparse-0",
    config: SPARSE,
    blockElements: 6,
    updates: [3],
    slots: [
      { dtype: "float32", shape: [3, 2] },
      { dtype: "uint32", shape: [3] },
    ],
  },
  { name: "__proto__", config: ADAM, blockElements: 1, updates: [0], slots: [] },
] as const;

const TENSORS = [
  { name: "w", dtype: "float32", shape: [10] },
  { name: "rows:sparse-0", dtype: "float32", shape: [3, 2] },
  { name: "__proto__", dtype: "int64", shape: [] },
] as const;

/** Bytes that tell of which slot they are. */
function bytesOf(name: string, slot: number): Uint8Array {
  const sizes: Record<string, number[]> = { w: [40, 40, 40], "rows:sparse-0": [24, 24, 12] };
  return new Uint8Array(sizes[name]?.[slot] ?? 8).fill(name.length + slot);
}

async function save(directory: string): Promise<string> {
  const { file } = await saveModel({
    ...{ directory, path: "m.safetensors", tensors: TENSORS, metadata: { job: "j" } },
    optimizers: { rules: 1, parameters: PARAMETERS },
    chunks: async function* ({ name }, slot) {
      yield bytesOf(name, slot);
    },
  });
  return file;
}

test("comes back as it was saved", () =>
  withDirectory(async (directory) => {
    const model = await openModel(await save(directory));
    const names = model.tensors.map(({ header }) => header.name);
    expect(names.sort()).toEqual(["__proto__", "rows:sparse-0", "w"]);
    expect(model.metadata).toEqual({ job: "j" });
    expect(model.optimizers?.rules).toBe(1);
    for (const { name, config, slots } of PARAMETERS) {
      const state = model.optimizers?.states.get(name);
      expect(state?.config).toEqual(config);
      expect(state?.slots.map(({ header: { dtype, shape } }) => ({ dtype, shape }))).toEqual(slots);
      for (const [i, slot] of (state?.slots ?? []).entries()) {
        expect(await joinChunks(slot.chunks())).toEqual(bytesOf(name, i + 1));
      }
    }
    const updates = model.optimizers?.states.get("w")?.updates;
    expect([updates?.(0, 4), updates?.(4, 4), updates?.(8, 2)]).toEqual([5, 7, 6]);
    // A block that has parts of several ones has the most updates of them.
    expect([updates?.(0, 10), updates?.(3, 2), updates?.(7, 1)]).toEqual([7, 7, 7]);
    await model.close();
  }));

test.each([
  ["another format", '\\"format\\":1', '\\"format\\":3', "BAD_VERSION"],
  ["no rules", '\\"rules\\":1', '\\"rules\\":0', "BAD_FILE"],
  ["a configuration of no parameter", '\\"adagrad\\"', '\\"adagrax\\"', "BAD_FILE"],
  ["a configuration that is not there", '\\"w\\",0,4', '\\"w\\",9,4', "BAD_FILE"],
  ["a parameter that is not there", '[\\"w\\",0', '[\\"v\\",0', "BAD_FILE"],
  ["a parameter twice", '[\\"w\\",0,4,[5,7,6],2]', '[\\"w\\",0,4,[5,7,6],0]', "BAD_FILE"],
  ["other blocks", '\\"w\\",0,4,', '\\"w\\",0,9,', "BAD_FILE"],
  ["blocks without elements", '\\"w\\",0,4,', '\\"w\\",0,0,', "BAD_FILE"],
  ["updates of fewer blocks", "[5,7,6]", "[5,777]", "BAD_FILE"],
  ["more slots", "[5,7,6],2", "[5,7,6],3", "BAD_FILE"],
  ["a slot of another name", "pserver.optimizer/2/w", "pserver.optimizer/3/w", "BAD_FILE"],
  ["no JSON", '{\\"format', '[\\"format', "BAD_FILE"],
])("is refused with %s", (_what, from, to, code) =>
  withDirectory(async (directory) => {
    const file = await save(directory);
    const bytes = await readFile(file);
    const at = bytes.indexOf(from);
    expect(at).toBeGreaterThan(0);
    bytes.write(to, at);
    const changed = join(directory, "changed.safetensors");
    await writeFile(changed, bytes);
    expect(await codeOf(openModel(changed))).toBe(code);
  }),
);

test("is not saved in another format, or under names that it needs", () =>
  withDirectory(async (directory) => {
    const optimizers = { rules: 1, parameters: PARAMETERS };
    const chunks = async function* (): AsyncGenerator<Uint8Array> {};
    const of = { directory, tensors: TENSORS, chunks, optimizers };
    expect(await codeOf(saveModel({ ...of, path: "m.npz" }))).toBe("BAD_PATH");
    const name = "pserver.optimizer/1/w";
    const reserved = [{ ...PARAMETERS[0], name }];
    const tensors = [{ name, dtype: "float32", shape: [10] }] as const;
    const taken = saveModel({
      ...{ ...of, tensors, path: "m.safetensors" },
      optimizers: { rules: 1, parameters: reserved },
    });
    expect(await codeOf(taken)).toBe("BAD_NAME");
  }));
