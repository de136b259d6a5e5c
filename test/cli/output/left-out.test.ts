// Proves what a command tells of tensors of a file that no parameter can hold if it may leave them out, and what it
// refuses otherwise: files of the reference implementations, and one that holds nothing else.
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { loadableOf, tellConversions } from "../../../src/cli/output/left-out.ts";
import { Output } from "../../../src/cli/output/output.ts";
import { type OpenModel, openModel } from "../../../src/model-files/index.ts";

const FIXTURES = join(import.meta.dirname, "..", "..", "fixtures", "model-files");

async function printed<T>(
  file: string,
  use: (output: Output, model: OpenModel) => T,
): Promise<{ result: T; lines: string[] }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const model = await openModel(join(FIXTURES, file));
  try {
    const result = use(Output.open({ stdout, stderr }, {}, {}), model);
    return {
      result,
      lines: String(stderr.read() ?? "")
        .split("\n")
        .slice(0, -1),
    };
  } finally {
    await model.close();
  }
}

test("tells each tensor that is left out, and what gets another type", async () => {
  const { result, lines } = await printed("other-orders.npz", (output, model) =>
    loadableOf(output, model, true),
  );
  expect(lines).toEqual([
    'warning: "big-complex" is left out: no parameter has the type ">c8"',
    'warning: "text" is left out: no parameter has the type "<U1"',
    'warning: "object" is left out: no parameter has the type "|O"',
    'warning: "fortran-empty" is left out: no parameter has the shape [3,0,2]',
    "1 tensor of uint16 as int32; each value stays the same",
    "2 tensors of int16 as int32; each value stays the same",
  ]);
  expect(result.leftOut).toEqual(["big-complex", "text", "object", "fortran-empty"]);
  const names = result.tensors.map(({ header }) => header.name);
  expect(names).not.toContain("fortran-empty");
  expect(names).toContain("big-float32");
});

test("a comparison keeps tensors without elements", async () => {
  const { lines } = await printed("other-orders.npz", tellConversions);
  expect(lines.join()).toContain('"object" is left out');
  expect(lines.join()).not.toContain("fortran-empty");
});

test.each([
  [
    "narrow.npz",
    false,
    "BAD_DTYPE",
    '"complex": expected what a parameter can have; received the type "<c8"',
  ],
  [
    "six-dtypes.safetensors",
    false,
    "BAD_SHAPE",
    '"empty": expected what a parameter can have; received the shape [0,3]',
  ],
  ["structured.npz", true, "BAD_DTYPE", '"w": expected'],
])("refuses %s, skipping %s, with %s", async (file, canSkip, code, message) => {
  const refused = printed(file, (output, model) => loadableOf(output, model, canSkip));
  await expect(refused).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test("takes what it can hold, and tells nothing of types that stay", async () => {
  const { lines } = await printed("half.npz", (output, model) => loadableOf(output, model, false));
  expect(lines).toEqual([]);
  const { lines: none } = await printed("gnu.tar", (output, model) =>
    loadableOf(output, model, true),
  );
  expect(none).toEqual([]);
});
