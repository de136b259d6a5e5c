import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import { dataBytes, relativeError, saveModel, type TensorHeader } from "../../model-files/index.ts";
import {
  blockPlaces,
  type Fields,
  type ParameterInfo,
  type Position,
  PserverError,
  parsePullReply,
  readStatusPages,
} from "../../protocol/index.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { OwnersClient } from "../requests/owners-client.ts";
import { checkModelDirectory } from "./model-directory.ts";

/** How long an owner may wait until it has folded up to the position of a pull. */
const BLOCK_WAIT_MS = 5_000;

/** Blocks asked for ahead of the one being written. */
const BLOCKS_AHEAD = 4;

/** How often the asker is told the progress of a save. */
const PROGRESS_MS = 500;

/** A request to save the model. */
export interface SaveRequest {
  /** Below the model directory. */
  readonly path: string;
  /** Identifies the save to those who stop or repeat it. */
  readonly token?: string;
  /** An inbox of the asker that is told the progress. */
  readonly progress?: string;
}

/** Dependencies of {@link Saver}. */
export interface SaverDeps {
  readonly service: Pick<LifecycleService, "status">;
  readonly owners: OwnersClient;
  /** Where models go; without it nothing can be saved on this host. */
  readonly directory: string | undefined;
  readonly job: string;
  /** Id of the host that writes. */
  readonly host: string;
  /** Told of errors that the operator has to correct. */
  readonly onError: (error: PserverError) => void;
}

/** Writes the model of a job into a file of this host, block by block. */
export class Saver {
  readonly #deps: SaverDeps;
  readonly #running = new Map<string, { stop: AbortController; saved: Promise<Fields> }>();

  constructor(deps: SaverDeps) {
    this.#deps = deps;
  }

  /**
   * Saves every parameter that is ready under a path of the model directory. A repeat of a request with
   * a token joins the save that it repeats.
   * @throws BAD_PATH, NOT_INITIALIZED if there is nothing to save, DISK_FULL, IO, NO_OWNER, …; ABORTED
   * if it was stopped. Messages name paths below the model directory only.
   */
  async save(
    asker: string,
    { path, token, progress }: SaveRequest,
    tell: (inbox: string, entries: Fields) => void,
  ): Promise<Fields> {
    const stop = new AbortController();
    const onProgress = (doneBytes: number, totalBytes: number): void => {
      if (progress !== undefined) tell(progress, { progress: { doneBytes, totalBytes } });
    };
    if (token === undefined) return await this.#save(path, stop.signal, onProgress);
    const key = runningKey(asker, token);
    const running = this.#running.get(key);
    if (running !== undefined) return await running.saved;
    const saved = this.#save(path, stop.signal, onProgress);
    this.#running.set(key, { stop, saved });
    try {
      return await saved;
    } finally {
      this.#running.delete(key);
    }
  }

  /** Stops a save that this asker has begun on this host; false if there is none. */
  stop(asker: string, token: string): boolean {
    const running = this.#running.get(runningKey(asker, token));
    running?.stop.abort(new PserverError("ABORTED", "the asker has stopped it"));
    return running !== undefined;
  }

  async #save(
    path: string,
    signal: AbortSignal,
    onProgress: (doneBytes: number, totalBytes: number) => void,
  ): Promise<Fields> {
    const { directory, job, host, onError } = this.#deps;
    if (directory === undefined) {
      throw new PserverError(
        "BAD_PATH",
        `no model directory is configured on this host; received ${JSON.stringify(path)}. Start it with --model-dir`,
        { received: path },
      );
    }
    await checkModelDirectory({ directory, host, onError });
    const { parameters, at } = await this.#parameters();
    if (parameters.size === 0) {
      throw new PserverError("NOT_INITIALIZED", `job ${job} has no parameter to save`, { job });
    }
    const tensors = [...parameters.values()].map(({ name, dtype, shape }) => ({
      name,
      dtype,
      shape,
    }));
    const totalBytes = tensors.reduce((sum, header) => sum + dataBytes(header), 0);
    let doneBytes = 0;
    const timer = setInterval(() => onProgress(doneBytes, totalBytes), PROGRESS_MS);
    try {
      const { file, bytes, format } = await saveModel({
        directory,
        path,
        tensors,
        chunks: async function* (this: Saver, header: TensorHeader) {
          for await (const block of this.#blocks(parameters.get(header.name), at)) {
            yield block;
            doneBytes += block.byteLength;
          }
        }.bind(this),
        metadata: { job, format: "nats-pserver" },
        signal,
      });
      const root = await realpath(directory);
      return { file: relative(root, file), bytes, format, host };
    } catch (error) {
      throw relativeError(error, directory);
    } finally {
      clearInterval(timer);
    }
  }

  async #parameters(): Promise<{
    parameters: Map<string, ParameterInfo>;
    at: readonly Position[];
  }> {
    const { service } = this.#deps;
    const { status, parameters } = await readStatusPages((request) => service.status(request));
    const ready = parameters.filter((parameter) => parameter.ready);
    return { parameters: new Map(ready.map((info) => [info.name, info])), at: status.at };
  }

  async *#blocks(
    parameter: ParameterInfo | undefined,
    at: readonly Position[],
  ): AsyncGenerator<Uint8Array, void, undefined> {
    if (parameter === undefined) return;
    const asked: Promise<Uint8Array>[] = [];
    for (const { index, shard } of blockPlaces(parameter.layout)) {
      const block = this.#block(parameter, index, shard, at);
      // A failure is noticed when the turn of the block comes.
      block.catch(() => undefined);
      asked.push(block);
      const first = asked.length === BLOCKS_AHEAD ? asked.shift() : undefined;
      if (first !== undefined) yield await first;
    }
    for (const block of asked) yield await block;
  }

  async #block(
    parameter: ParameterInfo,
    index: number,
    shard: number,
    at: readonly Position[],
  ): Promise<Uint8Array> {
    const { name, epoch } = parameter;
    const position = at[shard] ?? { generation: 1, seq: 0 };
    const message = await this.#deps.owners.ask(shard, "pull", {
      parameter: name,
      index,
      epoch,
      ...position,
      waitMs: BLOCK_WAIT_MS,
    });
    return parsePullReply(message).data;
  }
}

function runningKey(asker: string, token: string): string {
  return JSON.stringify([asker, token]);
}
