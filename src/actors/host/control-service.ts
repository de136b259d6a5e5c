import { stat } from "node:fs/promises";
import { basename } from "node:path";
import {
  dataBytes,
  formatOf,
  relativeError,
  saveModel,
  type TensorHeader,
} from "../../model-files/index.ts";
import { defined } from "../../protocol/fields.ts";
import {
  type BlockVersions,
  blockPlaces,
  CONTROL_VERBS,
  type ErrorCode,
  ensureError,
  type Fields,
  isOneOf,
  type Message,
  mapField,
  type ParameterInfo,
  type Position,
  PserverError,
  parsePullReply,
  parseShardVersionsReply,
  parseVersionsRequest,
  readStatusPages,
  type ShardVersions,
  shardsOfBlocks,
  shardVersionsRequest,
  textField,
  unescapeName,
  type VersionsReply,
  versionsReply,
  type WantedVersions,
} from "../../protocol/index.ts";
import { errnoCode, fileError } from "../../system/file-errors.ts";
import type { OpenedJob } from "../job/open-job.ts";
import type { OwnersClient } from "../job/owners-client.ts";
import { readArchivers, readStoppedArchivers } from "../journal/archivers.ts";
import { TRAINER_KEYS } from "../lifecycle/lock.ts";
import { toJournalRecord } from "../lifecycle/members.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { SaveQuotas } from "./save-quotas.ts";
import { SavedModels, type SaveRoom } from "./saved-models.ts";
import { HOST_LEASES, SHARD_LEASES } from "./shard-claims.ts";

/** Asks the owner of a shard for the versions of these parameters' blocks, in their order. */
export type AskShard = (
  shard: number,
  wanted: readonly WantedVersions[],
) => Promise<readonly ShardVersions[]>;

/** A wanted parameter, and its index in the request. */
interface WantedParameter extends WantedVersions {
  readonly at: number;
}

/**
 * Gathers versions of parameters from the owners of their shards, each asked once. The result is null for a parameter
 * that is not ready, and for one whose replies lack some blocks: a number of only a part of them would be wrong.
 */
export async function gatherVersions(
  parameters: readonly (ParameterInfo | null)[],
  ask: AskShard,
): Promise<VersionsReply> {
  const held: ShardVersions[][] = parameters.map(() => []);
  const silent: number[] = [];
  const asked = [...wantedByShard(parameters)].map(async ([shard, wanted]) => {
    try {
      const replies = await ask(shard, wanted);
      for (const [i, versions] of replies.entries()) held[wanted[i]?.at ?? -1]?.push(versions);
    } catch {
      // `hosts` shows why an owner does not answer; here it only counts that it does not.
      silent.push(shard);
    }
  });
  await Promise.all(asked);
  const versions = parameters.map((info, at) =>
    info?.ready ? combine(held[at] ?? [], info.layout.blocks) : null,
  );
  return { versions, silent: silent.sort((a, b) => a - b) };
}

/** Returns which ready parameters to ask each shard for. */
function wantedByShard(
  parameters: readonly (ParameterInfo | null)[],
): Map<number, WantedParameter[]> {
  const byShard = new Map<number, WantedParameter[]>();
  for (const [at, info] of parameters.entries()) {
    if (!info?.ready) continue;
    for (const shard of shardsOfBlocks(info.layout, 0, info.layout.blocks)) {
      const wanted = byShard.get(shard) ?? [];
      wanted.push({ at, parameter: info.name, epoch: info.epoch });
      byShard.set(shard, wanted);
    }
  }
  return byShard;
}

/** Combines the versions of a parameter's blocks; null unless the replies have exactly `blocks` of them. */
function combine(held: readonly ShardVersions[], blocks: number): BlockVersions | null {
  const some = held.filter((own) => own.blocks > 0);
  if (some.reduce((sum, own) => sum + own.blocks, 0) !== blocks) return null;
  return {
    least: Math.min(...some.map(({ least }) => least)),
    most: Math.max(...some.map(({ most }) => most)),
    updates: some.reduce((sum, { updates }) => sum + updates, 0),
  };
}

/** Grace time of a request to one shard's owner for its status, or for versions of its blocks. */
const STATUS_MS = 2_000;

/**
 * Time between two such requests. One that is under way when a connection is lost gets no reply, and that must not
 * make an owner that is there look missing.
 */
const STATUS_ATTEMPT_MS = 500;

/** Longest token of a save, in characters. */
const TOKEN_MAX = 64;

/** Longest inbox for the progress of a save, in characters. */
const INBOX_MAX = 1_024;

/** States of a shard by the error of its status request; "failed" for every other error. */
const STATES: { readonly [code in ErrorCode]?: string } = {
  NO_OWNER: "unowned",
  NO_MEMORY: "no-memory",
};

/** Answers control requests of operators and trainers, which any host of the job may answer. */
export class ControlService {
  readonly #job: OpenedJob;
  readonly #service: Pick<LifecycleService, "members" | "declared" | "status">;
  readonly #owners: OwnersClient;
  readonly #saver: Saver;

  constructor(job: OpenedJob, service: LifecycleService, owners: OwnersClient, saver: Saver) {
    this.#job = job;
    this.#service = service;
    this.#owners = owners;
    this.#saver = saver;
  }

  /** Returns the entries of the reply to `asker`; @throws the error that the reply is to carry. */
  async handle(
    asker: string,
    verb: string,
    message: Message,
    tell: (inbox: string, entries: Fields) => void,
  ): Promise<Fields> {
    if (!isOneOf(CONTROL_VERBS, verb)) {
      throw new PserverError(
        "BAD_MESSAGE",
        `control: expected ${CONTROL_VERBS.join(", ")}; received ${verb}`,
      );
    }
    switch (verb) {
      case "save":
        return await this.#saver.save(asker, parseSaveRequest(message.fields), tell);
      case "stop":
        return {
          stopped: this.#saver.stop(asker, textField(message.fields, "token", TOKEN_MAX)),
        };
      case "snapshot":
        return { shards: await this.#each((shard) => this.#snapshot(shard)) };
      case "hosts":
        return await this.#hosts();
      case "versions":
        return await this.#versions(message.fields);
    }
  }

  async #snapshot(shard: number): Promise<Fields> {
    const { position } = await this.#owners.check(shard, { blocks: [] });
    return await this.#owners.snapshot(shard, position);
  }

  async #versions(fields: Fields): Promise<Fields> {
    const names = parseVersionsRequest(fields);
    const { parameters } = await this.#service.status({ names });
    return versionsReply(
      await gatherVersions(parameters, (...asked) => this.#shardVersions(...asked)),
    );
  }

  async #shardVersions(
    shard: number,
    wanted: readonly WantedVersions[],
  ): Promise<readonly ShardVersions[]> {
    const request = shardVersionsRequest(wanted);
    const { fields } = await this.#owners.ask(
      shard,
      "versions",
      request,
      STATUS_MS,
      STATUS_ATTEMPT_MS,
    );
    return parseShardVersionsReply(fields, wanted.length);
  }

  async #hosts(): Promise<Fields> {
    const { bucket } = this.#job;
    const replies = await Promise.all([
      this.#job.leases.list(HOST_LEASES),
      this.#job.leases.list(SHARD_LEASES),
      this.#job.leases.keys(TRAINER_KEYS),
      this.#each((shard) => this.#status(shard)),
      this.#steps(),
      this.#service.declared(),
      readArchivers(bucket),
      readStoppedArchivers(bucket, Date.now()),
      // A tape that the broker cannot report on must not keep the rest from being shown.
      this.#job.tapeStorage().catch(() => undefined),
      // The same holds for copies, and a host may be kept from listing streams.
      this.#job.replicas().catch(() => undefined),
      this.#job.unfinishedRewind(),
    ]);
    const [hosts, claims, trainers, shards, steps, declared, ...more] = replies;
    const [archivers, stoppedArchivers, tape, replicas, rewind] = more;
    const owned = [...claims].map(([key, { value }]) => ({
      shard: Number(key.slice(SHARD_LEASES.length)),
      host: value["host"],
    }));
    return {
      hosts: [...hosts.values()].map(({ value: { host, pid, machine, modelDirectory } }) => ({
        ...defined({ host, pid, machine, modelDirectory }),
        shards: owned
          .filter((claim) => claim.host === host)
          .map(({ shard }) => shard)
          .sort((a, b) => a - b),
      })),
      trainers: [...trainers].map((key) => unescapeName(key.slice(TRAINER_KEYS.length))).sort(),
      shards,
      declared,
      archivers: archivers.flatMap(({ entry: record }) =>
        record === undefined ? [] : [{ ...record }],
      ),
      stoppedArchivers: stoppedArchivers.map((record) => ({ ...record })),
      ...(tape && { tape: { ...tape } }),
      ...(rewind && { rewind: { ...rewind } }),
      ...(replicas && { replicas: { ...replicas } }),
      ...steps,
    };
  }

  async #steps(): Promise<Fields> {
    const { synchronization } = this.#job.settings;
    if (synchronization.mode === "async") return { synchronization };
    const { verb: _verb, ...members } = toJournalRecord(await this.#service.members());
    return { synchronization, members };
  }

  /** Returns the status of a shard; if its owner does not answer, the state that follows from its error. */
  async #status(shard: number): Promise<Fields> {
    try {
      const { fields } = await this.#owners.ask(shard, "status", {}, STATUS_MS, STATUS_ATTEMPT_MS);
      return mapField(fields, "status");
    } catch (error) {
      const found = ensureError(error);
      // An owner that has failed answers every request with the error of its failure.
      const state = STATES[found.code] ?? "failed";
      return { shard, state, error: found.toWire() };
    }
  }

  #each<Result>(run: (shard: number) => Promise<Result>): Promise<Result[]> {
    return Promise.all(Array.from({ length: this.#job.settings.shards }, (_, shard) => run(shard)));
  }
}

function parseSaveRequest(fields: Fields): SaveRequest {
  const path = textField(fields, "path", 4_096);
  const { token, progress } = fields;
  return {
    path,
    ...(token === undefined ? {} : { token: textField(fields, "token", TOKEN_MAX) }),
    ...(progress === undefined ? {} : { progress: textField(fields, "progress", INBOX_MAX) }),
  };
}

const ADVICE = "create it again, or start the host with another --model-dir";

/** The directory in which a host saves models. */
interface ModelDirectory {
  readonly directory: string;
  readonly host: string;
  /** Called with an error that names the whole path; trainers are not told that. */
  readonly onError: (error: PserverError) => void;
}

/**
 * Checks, before a save, that the model directory exists. It is not created again: it is also missing
 * where a disk is not mounted, and the model would be written to the wrong disk.
 * @throws IO that names the host, the last name of the directory, and what to do.
 */
async function checkModelDirectory(model: ModelDirectory): Promise<void> {
  const { directory, host, onError } = model;
  const problem = await problemOf(directory);
  if (problem === undefined) return;
  const details = { host };
  const textWith = (shown: string): string =>
    `the model directory ${shown} of host ${host} ${problem}: ${ADVICE}`;
  onError(new PserverError("IO", textWith(directory), { ...details, path: directory }));
  throw new PserverError("IO", textWith(`…/${basename(directory)}`), details);
}

async function problemOf(directory: string): Promise<string | undefined> {
  try {
    return (await stat(directory)).isDirectory() ? undefined : "is not a directory";
  } catch (error) {
    const errno = errnoCode(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") return "does not exist";
    throw fileError("examine the model directory", directory, error);
  }
}

/** How long an owner may wait until it has folded up to the position of a pull. */
const BLOCK_WAIT_MS = 5_000;

/** Blocks asked for ahead of the one being written. */
const BLOCKS_AHEAD = 4;

/** How often the asker gets the progress of a save. */
const PROGRESS_MS = 500;

/** A request to save the model. */
interface SaveRequest {
  /** Path below the model directory. */
  readonly path: string;
  /** Identifies the save to whoever stops or repeats it. */
  readonly token?: string;
  /** An inbox of the asker that gets the progress. */
  readonly progress?: string;
}

/** Dependencies of {@link Saver}. */
interface SaverDeps {
  readonly service: Pick<LifecycleService, "status">;
  readonly owners: OwnersClient;
  /** Where models go; without it nothing can be saved on this host. */
  readonly directory: string | undefined;
  readonly quotas: SaveQuotas;
  readonly job: string;
  /** Id of the host that writes. */
  readonly host: string;
  /** Called with errors that the operator has to correct. */
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
   * @throws BAD_PATH, NOT_INITIALIZED if there is nothing to save, QUOTA, DISK_FULL, IO, NO_OWNER, …; ABORTED
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
    const save = (): Promise<Fields> => this.#save(asker, path, stop.signal, onProgress);
    if (token === undefined) return await save();
    const key = runningKey(asker, token);
    const running = this.#running.get(key);
    if (running !== undefined) return await running.saved;
    const saved = save();
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
    asker: string,
    path: string,
    signal: AbortSignal,
    onProgress: (doneBytes: number, totalBytes: number) => void,
  ): Promise<Fields> {
    const { directory, job, host, quotas, onError } = this.#deps;
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
    const files = formatOf(path) === "directory" ? tensors.length + 1 : 1;
    let room: SaveRoom | undefined;
    let doneBytes = 0;
    const timer = setInterval(() => onProgress(doneBytes, totalBytes), PROGRESS_MS);
    try {
      const saved = new SavedModels({ directory, job, quotas });
      room = await saved.reserve(asker, { path, bytes: totalBytes, files });
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
      await room.saved(bytes);
      return { file, bytes, format, host };
    } catch (error) {
      await room?.failed().catch((thrown: unknown) => onError(ensureError(thrown)));
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
      // A failure is noticed when the block is written.
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
