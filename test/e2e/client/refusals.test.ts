// Proves that the clients in TypeScript and C refuse the calls of test/vectors/refusals.json alike, with the
// same codes and details, and that nothing is changed by them. (Python's does it in test_vectors.py.)
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { renderRefusals } from "../../../scripts/write-c-vectors.mjs";
import type { Client } from "../../../src/client/index.ts";
import type { ParameterConfigInput } from "../../../src/protocol/config/index.ts";
import {
  allocateData,
  type Dtype,
  type Encoding,
  ensureError,
  type PserverError,
  type Tensor,
} from "../../../src/protocol/index.ts";
import { runProgram } from "../../c/running-program.ts";
import { startServedJob } from "../../c/test-job.ts";
import { BuiltLibrary, SANITIZED } from "../../c/toolchain.ts";

const VECTORS = join(import.meta.dirname, "../../vectors");

interface TensorVector {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly values: readonly (number | string)[];
}

interface RefusedCall {
  readonly what: string;
  readonly call: string;
  readonly name?: string;
  readonly tensor?: TensorVector;
  readonly rows?: readonly number[];
  readonly indices?: readonly (readonly number[])[];
  readonly alpha?: number | string;
  readonly beta?: number | string;
  readonly encoding?: Encoding;
  readonly learningRate?: number | string;
  readonly config?: ParameterConfigInput;
  readonly path?: string;
  readonly code: string;
  readonly details: object;
}

interface Refusals {
  readonly parameters: readonly {
    readonly name: string;
    readonly tensor: TensorVector;
    readonly config?: ParameterConfigInput;
  }[];
  readonly calls: readonly RefusedCall[];
}

/** What became of a call, to be compared. */
interface Told {
  readonly what: string;
  readonly code: string;
  readonly details: object;
}

let directory: string;
let library: BuiltLibrary;
let vectors: Refusals;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-refusals-"));
  library = await BuiltLibrary.build(SANITIZED);
  vectors = JSON.parse(await readFile(join(VECTORS, "refusals.json"), "utf8")) as Refusals;
});

afterAll(async () => {
  await library?.remove();
  await rm(directory, { recursive: true, force: true });
});

test("are the same in TypeScript and in C", async () => {
  const job = await startServedJob({ modelDirectory: directory });
  const first = await job.trainer("first");
  expect(await first.beginInit()).toBe(true);
  for (const { name, tensor, config } of vectors.parameters) {
    await first.initParam(name, toTensor(tensor), config);
  }
  await first.finishInit();
  const before = await first.getParams(vectors.parameters.map(({ name }) => name));

  const expected = vectors.calls.map(({ what, code, details }) => ({ what, code, details }));
  const refused = await job.trainer("refused");
  expect(await toldInTypeScript(refused)).toEqual(expected);
  await refused.close();
  expect(await toldInC(job.broker.url, job.job)).toEqual(expected);

  const names = before.map(({ name }) => name);
  expect(await first.getParams(names)).toEqual(before);
  expect((await first.listParams()).map(({ name }) => name)).toEqual([...names].sort());
});

async function toldInTypeScript(client: Client): Promise<Told[]> {
  const told: Told[] = [];
  for (const call of vectors.calls) {
    const { code, details } = await make(client, call).then(
      () => expect.fail(`${call.what}: the call succeeded`),
      (error: unknown): PserverError => ensureError(error),
    );
    // As they come over the wire.
    told.push({ what: call.what, code, details: JSON.parse(JSON.stringify(details)) as object });
  }
  return told;
}

async function toldInC(url: string, job: string): Promise<Told[]> {
  await writeFile(join(directory, "refusals.h"), renderRefusals(VECTORS));
  const output = await runProgram(await library.innerProgram("refusals", directory), [url, job]);
  const lines = output.trimEnd().split("\n");
  return lines.map((line, i) => {
    const [, code = "", details = ""] = /^(\w+) ([^\t]*)\t/.exec(line) ?? expect.fail(line);
    return { what: vectors.calls[i]?.what ?? "", code, details: JSON.parse(details) as object };
  });
}

async function make(client: Client, call: RefusedCall): Promise<unknown> {
  const { name = "", indices = [], encoding, learningRate, config, rows } = call;
  const [alpha, beta] = [Number(call.alpha), Number(call.beta)];
  const options = encoding === undefined ? {} : { encoding };
  const tensor = toTensor(call.tensor ?? { dtype: "float32", shape: [], values: [] });
  switch (call.call) {
    case "pull":
      return await client.getParams([name], options);
    case "set":
      return await client.setParams({ [name]: tensor });
    case "push":
      return await client.pushFull(name, tensor, alpha, beta, options);
    case "sendGrads":
      return await client.sendGrads(
        { [name]: rows === undefined ? tensor : { rows, values: tensor } },
        learningRate === undefined ? options : { ...options, learningRate: Number(learningRate) },
      );
    case "pullPart":
      return await client.pullPart(name, indices, options);
    case "pushPart":
      return await client.pushAsPart(name, tensor, indices, alpha, beta, options);
    case "create":
      return await client.createIfNotAlreadyCreated(name, tensor, config);
    case "initParam":
      return await client.initParam(name, tensor, config);
    case "save":
      return await client.saveModel(call.path ?? "");
    default:
      throw new Error(`no call is called ${call.call}`);
  }
}

function toTensor({ dtype, shape, values }: TensorVector): Tensor {
  const data = allocateData(dtype, values.length);
  values.forEach((value, i) => {
    data[i] = data instanceof BigInt64Array ? BigInt(value) : Number(value);
  });
  return { dtype, shape: [...shape], data };
}
