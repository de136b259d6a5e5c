// Proves that a model in several safetensors files is opened by its index, as Hugging Face writes it, and that an index
// is refused that names other tensors than its files have, or files of another place.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openModel } from "../../src/model-files/index.ts";
import { codeOf, contents, sampleTensor, save, withDirectory } from "./sample-model.ts";

const FIRST = "model-00001-of-00002.safetensors";
const SECOND = "model-00002-of-00002.safetensors";
const TENSORS = [
  sampleTensor("a", "float32", [2, 3]),
  sampleTensor("b", "int64", [4]),
  sampleTensor("c", "float64", []),
];
const MAP = { a: FIRST, b: FIRST, c: SECOND };

async function write(directory: string, weightMap: unknown): Promise<string> {
  const [a, b, c] = TENSORS as [(typeof TENSORS)[0], (typeof TENSORS)[0], (typeof TENSORS)[0]];
  await save(directory, FIRST, [a, b], { format: "pt" });
  await save(directory, SECOND, [c], { format: "pt" });
  const index = join(directory, "model.safetensors.index.json");
  const text = JSON.stringify({ metadata: { total_size: 64 }, weight_map: weightMap });
  await writeFile(index, text);
  return index;
}

test("has the tensors of all its files", () =>
  withDirectory(async (directory) => {
    const model = await openModel(await write(directory, MAP));
    const found = await contents(model);
    expect(found).toEqual(new Map(TENSORS.map((tensor) => [tensor.header.name, tensor])));
    expect(model.metadata).toEqual({ format: "pt" });
    await model.close();
    const [first] = model.tensors;
    expect(await codeOf(first?.chunks()[Symbol.asyncIterator]().next() ?? Promise.resolve())).toBe(
      "CLOSED",
    );
  }));

test.each([
  ["a tensor in another file", { ...MAP, a: SECOND }, "BAD_FILE"],
  ["a tensor that no file has", { ...MAP, d: SECOND }, "BAD_FILE"],
  ["fewer tensors than its files have", { a: FIRST, c: SECOND }, "BAD_FILE"],
  ["a file that is not there", { ...MAP, c: "model-3.safetensors" }, "IO"],
  ["a file of another place", { ...MAP, c: `../${SECOND}` }, "BAD_FILE"],
  ["a file of another kind", { ...MAP, c: "c.bin" }, "BAD_FILE"],
  ["no files", {}, "BAD_FILE"],
  ["no map", undefined, "BAD_FILE"],
])("is refused with %s", (_what, map, code) =>
  withDirectory(async (directory) => {
    expect(await codeOf(openModel(await write(directory, map)))).toBe(code);
  }),
);

test("is refused with an index that is no JSON", () =>
  withDirectory(async (directory) => {
    const index = join(directory, "m.safetensors.index.json");
    await writeFile(index, "{");
    expect(await codeOf(openModel(index))).toBe("BAD_FILE");
  }));
