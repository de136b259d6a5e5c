import { batches, type Dataset, wholeBatch } from "../../../examples/digits/dataset.ts";
import {
  differentiate,
  type Evaluation,
  evaluate,
  initialWeights,
  PARAMETERS,
} from "../../../examples/digits/network.ts";
import { toTensors, toWeights } from "../../../examples/digits/tensors.ts";
import type { Client, ParameterConfigInput } from "../../../src/client/index.ts";

/** One trainer's part in learning the digits. */
export interface DigitsWork {
  readonly client: Client;
  readonly digits: Dataset;
  readonly batchSize: number;
  readonly steps: number;
  /** Decides the order of its images. */
  readonly seed: number;
  /** Called with the number of steps it has sent, each time it has read the weights. */
  readonly onRead?: (stepsSent: number) => void;
  /** Called before it sends a step, with the number of that step. */
  readonly onSend?: (step: number) => void;
}

/** Puts the network's first weights on the server. */
export async function initializeDigits(
  client: Client,
  config: ParameterConfigInput,
): Promise<void> {
  if (!(await client.beginInit())) throw new Error("expected to be selected");
  const tensors = toTensors(initialWeights(1));
  await Promise.all(PARAMETERS.map((name) => client.initParam(name, tensors[name], config)));
  await client.finishInit();
}

/** Reads, differentiates and sends, step by step. */
export async function trainDigits(work: DigitsWork): Promise<void> {
  const { client, digits, batchSize, steps, seed, onRead, onSend } = work;
  const source = batches(digits.train, batchSize, seed);
  for (let step = 1; step <= steps; step++) {
    const weights = toWeights(await client.getParams(PARAMETERS));
    onRead?.(step - 1);
    const { gradients } = differentiate(weights, source.next().value);
    onSend?.(step);
    await client.sendGrads(toTensors(gradients));
  }
}

/** Loss and accuracy of the server's weights on the images that nobody trained on. */
export async function evaluateDigits(client: Client, digits: Dataset): Promise<Evaluation> {
  return evaluate(toWeights(await client.getParams(PARAMETERS)), wholeBatch(digits.test));
}
