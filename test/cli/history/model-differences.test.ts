// Proves that two model files are compared by what their tensors are, not by how a file stores them: tied weights
// under another of their names, and elements of another type or order.
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { type ComparedSide, compareSides } from "../../../src/cli/history/model-differences.ts";
import { Output } from "../../../src/cli/output/output.ts";
import { isEqual } from "../../../src/history/compare-models.ts";
import { openModel, type TensorSource } from "../../../src/model-files/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";

const output = Output.open({ stdout: new PassThrough(), stderr: new PassThrough() }, {}, {});
const { signal } = new AbortController();

function side(
  names: readonly string[],
  metadata: Readonly<Record<string, string>> = {},
): ComparedSide {
  const tensors = names.map((name): TensorSource => {
    const header = { name, dtype: "float32", shape: [2] } as const;
    return {
      header,
      async *chunks() {
        yield bytesOf(Float32Array.of(1, 2)).slice();
      },
    };
  });
  const model = { tensors, skipped: [], metadata, close: async () => undefined };
  return { kind: "file", path: names.join(), model };
}

async function compare(
  a: ComparedSide,
  b: ComparedSide,
  names?: readonly string[],
): Promise<string[]> {
  const found = await compareSides(output, [a, b], { names, asSaved: true }, signal);
  return found.map((each) => `${each.name} ${each.kind} ${isEqual(each) ? "equal" : "different"}`);
}

test.each(["either side", "the other side"])("a tied weight has the name of %s", async (which) => {
  const job = side(["embed", "w"]);
  const file = side(["a_head", "w"], { embed: "a_head", format: "pt" });
  const sides = which === "either side" ? ([job, file] as const) : ([file, job] as const);
  expect(await compare(...sides)).toEqual(["embed compared equal", "w compared equal"]);
  expect(await compare(...sides, ["embed"])).toEqual(["embed compared equal"]);
});

test("a name that only one side has is told as such", async () => {
  const found = await compare(side(["embed"]), side(["a_head"], { other: "a_head" }));
  expect(found.sort()).toEqual(["a_head only-b different", "embed only-a different"]);
});

test("elements are compared as they are held", async () => {
  const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "model-files");
  const open = async (path: string): Promise<ComparedSide> => {
    return { kind: "file", path, model: await openModel(join(fixtures, path)) };
  };
  const [narrow, same] = [await open("narrow.npz"), await open("narrow.safetensors")];
  const names = ["half", "bool", "int8", "uint16", "kept"];
  expect((await compare(narrow, same, names)).sort()).toEqual(
    names.map((name) => `${name} compared equal`).sort(),
  );
  for (const each of [narrow, same]) if (each.kind === "file") await each.model.close();
});
