import { type OpenModel, openModel } from "../../src/model-files/index.ts";
import { loadDigits, wholeBatch } from "./dataset.ts";
import { evaluate, type Weights } from "./network.ts";
import { toWeights } from "./tensors.ts";

// Scores a saved model on the test digits:  node score.js digits.safetensors
// Prints {"loss":…,"accuracy":…}. The demo runs it in a fresh process that shares nothing with the
// training but the file.

const path = process.argv[2];
if (path === undefined) {
  console.error("expected the path of a model file; received nothing");
  process.exit(2);
}
const weights = await readWeights(path);
const { test } = await loadDigits();
console.log(JSON.stringify(evaluate(weights, wholeBatch(test))));

async function readWeights(file: string): Promise<Weights> {
  const model = await openModel(file);
  try {
    return toWeights(await readTensors(model));
  } finally {
    await model.close();
  }
}

async function readTensors(model: OpenModel): Promise<{ name: string; data: Float32Array }[]> {
  const tensors: { name: string; data: Float32Array }[] = [];
  for (const { header, chunks } of model.tensors) {
    if (header.dtype !== "float32") continue;
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks()) parts.push(chunk);
    // A buffer of its own: chunks may end inside an element.
    const bytes = Uint8Array.from(Buffer.concat(parts));
    tensors.push({ name: header.name, data: new Float32Array(bytes.buffer) });
  }
  return tensors;
}
