import { readFile } from "node:fs/promises";
import { accuracy, Problem } from "./problem.ts";

// Says by its exit code whether a saved model is good: 0 if it classifies nine of ten samples correctly, else 1.
// Its argument is a .safetensors file with the parameter `w`. `pserver bisect` runs it on the model at points
// between a good and a bad one.

const GOOD = 0.9;
const SAMPLES = 500;

const bytes = await readFile(process.argv[2] ?? "");
const headerBytes = Number(bytes.readBigUInt64LE(0));
const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes)) as {
  readonly w: { readonly data_offsets: readonly [number, number] };
};
const [start, end] = header.w.data_offsets.map((offset) => 8 + headerBytes + offset);
const weights = new Float32Array(Uint8Array.from(bytes.subarray(start, end)).buffer);
const found = accuracy(weights, new Problem(100).samples(SAMPLES));
console.log(`accuracy ${found.toFixed(3)}`);
process.exit(found >= GOOD ? 0 : 1);
