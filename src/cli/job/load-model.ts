import type { Client } from "../../client/client.ts";
import type { TensorSource } from "../../model-files/index.ts";
import type { ParameterConfig } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import type { Tensor } from "../../protocol/tensor.ts";
import { planOverwrite, splitTensor } from "./plan-overwrite.ts";
import { groupBytes, inBoundedOrder, readTensor } from "./tensor-work.ts";

/** How to load a model. */
export interface LoadOptions {
  /** How each parameter of a new job is updated, by name. */
  readonly configs: ReadonlyMap<string, ParameterConfig>;
  /** Whether the values of a job that is initialized are overwritten; its configuration stays. */
  readonly overwrite: boolean;
  /** For the whole load. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

/** What was loaded. */
export interface LoadedModel {
  readonly parameters: number;
  readonly bytes: number;
  /** Whether the job was initialized before, so that its values were overwritten. */
  readonly overwritten: boolean;
}

/** The calls of the client that a load makes. */
export type LoadingClient = Pick<
  Client,
  "beginInit" | "initParams" | "finishInit" | "status" | "listParams" | "setParams"
>;

/**
 * Initializes a job with the tensors of a model, or overwrites the values of an initialized one. A tensor
 * that a save joined from sparse shards is split into them again. Memory holds a few tensors at a time.
 * @throws ALREADY_INITIALIZED if the job is ready or has parameters, and `overwrite` is false; as
 * {@link planOverwrite} before anything is overwritten; NOT_SELECTED while another trainer initializes
 * the job; what the client and the file's reader throw.
 */
export async function loadModel(
  client: LoadingClient,
  tensors: readonly TensorSource[],
  options: LoadOptions,
): Promise<LoadedModel> {
  const totalBytes = groupBytes(tensors);
  const deadline = performance.now() + options.timeoutMs;
  const { signal } = options;
  const call = (): { timeoutMs: number; signal: AbortSignal } => ({
    timeoutMs: Math.max(1, deadline - performance.now()),
    signal,
  });
  let doneBytes = 0;
  const sendAll = (send: (group: ReadonlyMap<string, Tensor>) => Promise<unknown>): Promise<void> =>
    inBoundedOrder(tensors, async (group) => {
      const values = new Map<string, Tensor>();
      for (const source of group) {
        signal.throwIfAborted();
        values.set(source.header.name, await readTensor(source));
      }
      await send(values);
      doneBytes += groupBytes(group);
      options.onProgress(doneBytes, totalBytes);
    });
  const existing = (await client.listParams(call())).filter(({ ready }) => ready);
  const [first] = existing;
  if (first !== undefined) {
    if (!options.overwrite) throw alreadyInitialized(`it has ${quoteName(first.name)}`);
    const parts = planOverwrite(tensors, existing);
    await sendAll((group) => {
      const values = [...group].flatMap(([name, tensor]) =>
        splitTensor(tensor, parts.get(name) ?? []),
      );
      return client.setParams(new Map(values), call());
    });
    const parameters = [...parts.values()].reduce((sum, { length }) => sum + length, 0);
    return { parameters, bytes: totalBytes, overwritten: true };
  }
  if (!(await client.beginInit({ ...call(), wait: false })))
    throw await notSelected(client, call());
  await sendAll((group) =>
    client.initParams(group, (name) => options.configs.get(name) ?? {}, call()),
  );
  await client.finishInit(call());
  return { parameters: tensors.length, bytes: totalBytes, overwritten: false };
}

async function notSelected(
  client: LoadingClient,
  call: { timeoutMs: number; signal: AbortSignal },
): Promise<PserverError> {
  const { state, by } = await client.status(call);
  if (state === "ready") return alreadyInitialized(`it was by ${quoteName(by)}`);
  return new PserverError("NOT_SELECTED", `the job is being initialized by ${quoteName(by)}`, {
    state,
    by,
  });
}

function alreadyInitialized(how: string): PserverError {
  return new PserverError("ALREADY_INITIALIZED", `the job is initialized already: ${how}`);
}
