import {
  CONTROL_VERBS,
  type ErrorCode,
  ensureError,
  type Fields,
  isOneOf,
  type Message,
  mapField,
  PserverError,
  parseShardVersionsReply,
  parseVersionsRequest,
  type ShardVersions,
  type Synchronization,
  shardVersionsRequest,
  textField,
  unescapeName,
  versionsReply,
  type WantedVersions,
} from "../../protocol/index.ts";
import type { ArchiverRecord } from "../archivers/archiver-record.ts";
import { HOST_LEASES, SHARD_LEASES } from "../host/shard-claims.ts";
import type { Leases } from "../leases/leases.ts";
import { toJournalRecord } from "../lifecycle/members.ts";
import { TRAINER_KEYS } from "../lifecycle/record-format.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { OwnersClient } from "../requests/owners-client.ts";
import type { TapeStorage } from "../tape/tape-store.ts";
import type { SaveRequest, Saver } from "./saver.ts";
import { gatherVersions } from "./versions.ts";

/** Grace time of a request to one shard's owner for its status, or for versions of its blocks. */
const STATUS_MS = 2_000;

/**
 * Time between two such requests: one that is under way when a connection is lost gets no reply, and an
 * owner that is there must not be shown as missing for that.
 */
const STATUS_ATTEMPT_MS = 500;

/** Characters of the token of a save. */
const TOKEN_MAX = 64;

/** Characters of the inbox that is told the progress of a save. */
const INBOX_MAX = 1_024;

/** States of a shard by the error of its status request; after every other error it is "failed". */
const STATES: { readonly [code in ErrorCode]?: string } = {
  NO_OWNER: "unowned",
  NO_MEMORY: "no-memory",
};

/** Dependencies of {@link ControlService}. */
export interface ControlServiceDeps {
  readonly service: Pick<LifecycleService, "members" | "declared" | "status">;
  readonly synchronization: Synchronization;
  readonly saver: Saver;
  readonly owners: OwnersClient;
  readonly leases: Leases;
  /** The archivers that have registered themselves. */
  readonly archivers: () => Promise<readonly ArchiverRecord[]>;
  /** What the job's tape takes in the broker; undefined of a job without one. */
  readonly tapeStorage: () => Promise<TapeStorage | undefined>;
  /** Number of shards. */
  readonly shards: number;
}

/** Answers control requests of operators and trainers, which any host of the job may answer. */
export class ControlService {
  readonly #deps: ControlServiceDeps;

  constructor(deps: ControlServiceDeps) {
    this.#deps = deps;
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
        return await this.#deps.saver.save(asker, parseSaveRequest(message.fields), tell);
      case "stop":
        return {
          stopped: this.#deps.saver.stop(asker, textField(message.fields, "token", TOKEN_MAX)),
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
    const { position } = await this.#deps.owners.check(shard, { blocks: [] });
    return await this.#deps.owners.snapshot(shard, position);
  }

  async #versions(fields: Fields): Promise<Fields> {
    const names = parseVersionsRequest(fields);
    const { parameters } = await this.#deps.service.status({ names });
    return versionsReply(
      await gatherVersions(parameters, (...asked) => this.#shardVersions(...asked)),
    );
  }

  async #shardVersions(
    shard: number,
    wanted: readonly WantedVersions[],
  ): Promise<readonly ShardVersions[]> {
    const request = shardVersionsRequest(wanted);
    const { fields } = await this.#deps.owners.ask(
      shard,
      "versions",
      request,
      STATUS_MS,
      STATUS_ATTEMPT_MS,
    );
    return parseShardVersionsReply(fields, wanted.length);
  }

  async #hosts(): Promise<Fields> {
    const [hosts, claims, trainers, shards, steps, declared, archivers, tape] = await Promise.all([
      this.#deps.leases.list(HOST_LEASES),
      this.#deps.leases.list(SHARD_LEASES),
      this.#deps.leases.keys(TRAINER_KEYS),
      this.#each((shard) => this.#status(shard)),
      this.#steps(),
      this.#deps.service.declared(),
      this.#deps.archivers(),
      // A tape that the broker cannot look at must not keep the rest from being told.
      this.#deps.tapeStorage().catch(() => undefined),
    ]);
    const owned = [...claims].map(([key, { host }]) => ({
      shard: Number(key.slice(SHARD_LEASES.length)),
      host,
    }));
    return {
      hosts: [...hosts.values()].map(({ owner: _owner, ...host }) => ({
        ...host,
        shards: owned
          .filter((claim) => claim.host === host["host"])
          .map(({ shard }) => shard)
          .sort((a, b) => a - b),
      })),
      trainers: [...trainers].map((key) => unescapeName(key.slice(TRAINER_KEYS.length))).sort(),
      shards,
      declared,
      archivers: archivers.map((archiver) => ({ ...archiver })),
      ...(tape && { tape: { ...tape } }),
      ...steps,
    };
  }

  async #steps(): Promise<Fields> {
    const synchronization = this.#deps.synchronization;
    if (synchronization.mode === "async") return { synchronization };
    const { verb: _verb, ...members } = toJournalRecord(await this.#deps.service.members());
    return { synchronization, members };
  }

  /** The status of a shard; if its owner does not answer, the state that this means. */
  async #status(shard: number): Promise<Fields> {
    try {
      const { owners } = this.#deps;
      const { fields } = await owners.ask(shard, "status", {}, STATUS_MS, STATUS_ATTEMPT_MS);
      // A status can have more entries than a message; earlier versions sent as many as fitted.
      return fields["status"] === undefined ? fields : mapField(fields, "status");
    } catch (error) {
      const found = ensureError(error);
      // An owner that has failed answers every request with the error of its failure.
      const state = STATES[found.code] ?? "failed";
      return { shard, state, error: found.toWire() };
    }
  }

  #each<Result>(run: (shard: number) => Promise<Result>): Promise<Result[]> {
    return Promise.all(Array.from({ length: this.#deps.shards }, (_, shard) => run(shard)));
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
