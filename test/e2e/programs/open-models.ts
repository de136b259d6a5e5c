/**
 * Opens the model files that its arguments name, one after the other, and prints for each a JSON object
 * a line: the number of tensors, or the code that it was refused with. Run with a small heap, it shows
 * that no file makes a reader take much memory: one that does ends the process.
 */
import { readTensorFile } from "../../../src/cli/tensor-files.ts";
import { openModel } from "../../../src/model-files/index.ts";
import { ensureError } from "../../../src/protocol/index.ts";

async function outcomeOf(path: string): Promise<object> {
  try {
    if (path.endsWith(".json")) {
      await readTensorFile(path, { name: "w", dtype: "float32", shape: [2, 3] });
      return { tensors: 1 };
    }
    const model = await openModel(path);
    await model.close();
    return { tensors: model.tensors.length };
  } catch (error) {
    return { code: ensureError(error).code };
  }
}

for (const path of process.argv.slice(2)) {
  process.stdout.write(`${JSON.stringify(await outcomeOf(path))}\n`);
}
