import { saveModel } from "../model-files/index.ts";
import {
  blockPlaces,
  decodeMessage,
  encodeMessage,
  type Fields,
  type ParameterInfo,
  type Position,
  PserverError,
  parsePullReply,
  parseStatusReply,
  readStatusPages,
} from "../protocol/index.ts";
import type { LifecycleService } from "./lifecycle/service.ts";
import type { OwnersClient } from "./owners-client.ts";

/** How long an owner may take for one block of a model that is being saved. */
const BLOCK_WAIT_MS = 5_000;

/** Blocks asked for ahead of the one being written. */
const BLOCKS_AHEAD = 4;

/** Name under which a host asks its own lifecycle: no trainer has it, it is never in a subject. */
const SAVER = "=saver";

/** Writes the model of a job into a file of this host, block by block. */
export class Saver {
  readonly #service: LifecycleService;
  readonly #owners: OwnersClient;
  readonly #directory: string | undefined;
  readonly #job: string;

  constructor(options: {
    readonly service: LifecycleService;
    readonly owners: OwnersClient;
    /** Where models go; without one nothing can be saved on this host. */
    readonly directory: string | undefined;
    readonly job: string;
  }) {
    this.#service = options.service;
    this.#owners = options.owners;
    this.#directory = options.directory;
    this.#job = options.job;
  }

  /**
   * Saves every parameter that is ready under a path of the model directory.
   * @throws BAD_PATH, NOT_INITIALIZED if there is nothing to save, DISK_FULL, IO, NO_OWNER, ….
   */
  async save(path: string): Promise<Fields> {
    if (this.#directory === undefined) {
      throw new PserverError(
        "BAD_PATH",
        `no model directory is configured on this host; received ${JSON.stringify(path)}. Start it with --model-dir`,
        { received: path },
      );
    }
    const { parameters, at } = await this.#parameters();
    if (parameters.size === 0) {
      throw new PserverError("NOT_INITIALIZED", `job ${this.#job} has no parameter to save`, {
        job: this.#job,
      });
    }
    const { file, bytes, format } = await saveModel({
      directory: this.#directory,
      path,
      tensors: [...parameters.values()].map(({ name, dtype, shape }) => ({ name, dtype, shape })),
      chunks: (header) => this.#blocks(parameters.get(header.name), at),
      metadata: { job: this.#job, format: "nats-pserver" },
    });
    return { file, bytes, format };
  }

  async #parameters(): Promise<{
    parameters: Map<string, ParameterInfo>;
    at: readonly Position[];
  }> {
    const { status, parameters } = await readStatusPages(async (request) => {
      const message = decodeMessage(encodeMessage({ ...request }));
      return parseStatusReply(await this.#service.handle(SAVER, "status", message));
    });
    const ready = parameters.filter((parameter) => parameter.ready);
    return { parameters: new Map(ready.map((info) => [info.name, info])), at: status.at };
  }

  async *#blocks(
    parameter: ParameterInfo | undefined,
    at: readonly Position[],
  ): AsyncGenerator<Uint8Array, void, undefined> {
    if (parameter === undefined) return;
    const places = blockPlaces(parameter.layout);
    const asked: Promise<Uint8Array>[] = [];
    for (let next = 0; next < places.length || asked.length > 0; ) {
      while (asked.length < BLOCKS_AHEAD && next < places.length) {
        const place = places[next++];
        if (place !== undefined) asked.push(this.#block(parameter, place.index, place.shard, at));
      }
      const first = asked.shift();
      // A later one that fails meanwhile is found out about when its turn comes.
      for (const other of asked) other.catch(() => undefined);
      if (first !== undefined) yield await first;
    }
  }

  async #block(
    parameter: ParameterInfo,
    index: number,
    shard: number,
    at: readonly Position[],
  ): Promise<Uint8Array> {
    const { name, epoch } = parameter;
    const position = at[shard] ?? { generation: 1, seq: 0 };
    const message = await this.#owners.ask(shard, "pull", {
      parameter: name,
      index,
      epoch,
      ...position,
      waitMs: BLOCK_WAIT_MS,
    });
    return parsePullReply(message).data;
  }
}
