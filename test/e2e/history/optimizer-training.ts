import { createHash } from "node:crypto";
import type { Client, Tensor } from "../../../src/client/index.ts";
import { OPTIMIZERS } from "../../../src/protocol/config/index.ts";
import { bytesOf } from "../../../src/protocol/dtypes.ts";
import { fullConfig } from "../../actors/fold/optimizer-configs.ts";

/** More elements than one block has. */
const LARGE = 1_300_000;
export const NAMES: readonly string[] = [...OPTIMIZERS, "large", "rows", "half"];

/** The bits of 1, 2 and 3 in bfloat16. */
const HALVES = Uint16Array.of(0x3f80, 0x4000, 0x4040);

function halves(): Tensor {
  return { dtype: "bfloat16", shape: [3], data: HALVES };
}

/** Parameters of every optimizer, a large one, a sparse one, and one of half floats, whose slots are float32. */
export async function initialize(client: Client): Promise<void> {
  await client.beginInit();
  for (const optimizer of OPTIMIZERS) {
    await client.initParam(optimizer, Float64Array.of(1, -2, 3), fullConfig(optimizer));
  }
  await client.initParam("large", new Float32Array(LARGE).fill(1), fullConfig("adam"));
  const rows = { dtype: "float32", shape: [8, 2], data: new Float32Array(16).fill(1) } as const;
  await client.initParam("rows", rows, fullConfig("adagrad", { sparse: true }));
  await client.initParam("half", halves(), fullConfig("adam"));
  await client.finishInit();
}

/** The same gradients for each client and number. */
export async function train(client: Client, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) {
    const small = OPTIMIZERS.filter((name) => name !== "none").map(
      (name) => [name, Float64Array.of(i, -1, 0.5)] as const,
    );
    await client.sendGrads({
      ...Object.fromEntries(small),
      large: new Float32Array(LARGE).fill(i % 3),
      rows: { rows: [i % 8], values: Float32Array.of(i, 1) },
      half: halves(),
    });
  }
}

/** Version and digest of the values of every parameter. */
export async function values(
  client: Client,
): Promise<{ name: string; version: number; hash: string }[]> {
  const parameters = await client.getParams(NAMES);
  return parameters.map(({ name, data, version }) => {
    const hash = createHash("sha256").update(bytesOf(data)).digest("hex");
    return { name, version, hash };
  });
}
