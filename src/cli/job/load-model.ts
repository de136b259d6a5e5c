import type { Client } from "../../client/client.ts";
import type { TensorSource } from "../../model-files/index.ts";
import type { ParameterConfigInput } from "../../protocol/config/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { type Tensor, tensorBytes, tensorView, zeros } from "../../protocol/tensor.ts";

/** Tensors that are read or sent at a time, and their bytes; a larger tensor goes alone. */
const IN_WORK_MAX = 16;
const IN_WORK_BYTES_MAX = 64 * 1024 * 1024;

/** How to load a model. */
export interface LoadOptions {
  readonly config: ParameterConfigInput;
  /** For the whole load. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

/** What was loaded. */
export interface LoadedModel {
  readonly parameters: number;
  readonly bytes: number;
}

/** The calls of the client that a load makes. */
export type LoadingClient = Pick<
  Client,
  "beginInit" | "initParam" | "finishInit" | "status" | "listParams"
>;

/**
 * Initializes a job with the tensors of a model. Memory holds a few tensors at a time.
 * @throws ALREADY_INITIALIZED if the job is ready or has parameters; NOT_SELECTED while another
 * trainer initializes it; what the client and the file's reader throw.
 */
export async function loadModel(
  client: LoadingClient,
  tensors: readonly TensorSource[],
  options: LoadOptions,
): Promise<LoadedModel> {
  const totalBytes = tensors.reduce((sum, { header }) => sum + headerBytes(header), 0);
  const deadline = performance.now() + options.timeoutMs;
  const { signal } = options;
  const call = (): { timeoutMs: number; signal: AbortSignal } => ({
    timeoutMs: Math.max(1, deadline - performance.now()),
    signal,
  });
  const existing = (await client.listParams(call())).find(({ ready }) => ready);
  if (existing !== undefined) throw alreadyInitialized(`it has ${quoteName(existing.name)}`);
  if (!(await client.beginInit({ ...call(), wait: false })))
    throw await notSelected(client, call());
  let doneBytes = 0;
  await inBoundedOrder(tensors, async (source) => {
    signal.throwIfAborted();
    const tensor = await readTensor(source);
    await client.initParam(source.header.name, tensor, options.config, call());
    doneBytes += headerBytes(source.header);
    options.onProgress(doneBytes, totalBytes);
  });
  await client.finishInit(call());
  return { parameters: tensors.length, bytes: totalBytes };
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

/** Runs `work` for all, some at a time; the first failure ends it once those begun have ended. */
async function inBoundedOrder(
  sources: readonly TensorSource[],
  work: (source: TensorSource) => Promise<void>,
): Promise<void> {
  const running = new Map<Promise<void>, number>();
  let failure: { readonly error: unknown } | undefined;
  let bytes = 0;
  for (const source of sources) {
    const next = headerBytes(source.header);
    while (running.size > 0 && (running.size >= IN_WORK_MAX || bytes + next > IN_WORK_BYTES_MAX)) {
      await Promise.race(running.keys());
    }
    if (failure !== undefined) break;
    bytes += next;
    const task: Promise<void> = work(source)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => {
        running.delete(task);
        bytes -= next;
      });
    running.set(task, next);
  }
  await Promise.all(running.keys());
  if (failure !== undefined) throw failure.error;
}

async function readTensor(source: TensorSource): Promise<Tensor> {
  const tensor = zeros(source.header.dtype, source.header.shape);
  const target = tensorView(tensor);
  let filled = 0;
  for await (const chunk of source.chunks()) {
    target.set(chunk, filled);
    filled += chunk.length;
  }
  return tensor;
}

function headerBytes({ dtype, shape }: TensorSource["header"]): number {
  return tensorBytes(dtype, shape);
}
