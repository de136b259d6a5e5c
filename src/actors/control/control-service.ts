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
import { HOST_LEASES, SHARD_LEASES } from "../host/shard-claims.ts";
import type { Leases } from "../leases/leases.ts";
import { toJournalRecord } from "../lifecycle/members.ts";
import { TRAINER_KEYS } from "../lifecycle/record-format.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { OwnersClient } from "../requests/owners-client.ts";
import type { SaveRequest, Saver } from "./saver.ts";
import { gatherVersions } from "./versions.ts";

/** How long one shard's owner may take to tell its status, or versions of its blocks. */
const STATUS_MS = 2_000;

/** How long a shard's owner may take for a snapshot of gigabytes. */
const SNAPSHOT_MS = 300_000;

/** Time between two requests for the same snapshot: one of them may get lost, or its reply. */
const SNAPSHOT_ATTEMPT_MS = 5_000;

/** Characters of the token of a save. */
const TOKEN_MAX = 64;

/** Characters of the inbox that hears of its progress. */
const INBOX_MAX = 1_024;

/** What a shard is that answers so; every other error is what it has failed for. */
const STATES: { readonly [code in ErrorCode]?: string } = {
  NO_OWNER: "unowned",
  NO_MEMORY: "no-memory",
};

/** What the answers need of the job's lifecycle. */
type AskedLifecycle = Pick<LifecycleService, "members" | "declared" | "parameters">;

/** What operators and trainers may ask of whichever host answers. */
export class ControlService {
  readonly #saver: Saver;
  readonly #owners: OwnersClient;
  readonly #leases: Leases;
  readonly #shards: number;
  readonly #service: AskedLifecycle;
  readonly #synchronization: Synchronization;

  constructor(options: {
    readonly service: AskedLifecycle;
    readonly synchronization: Synchronization;
    readonly saver: Saver;
    readonly owners: OwnersClient;
    readonly leases: Leases;
    readonly shards: number;
  }) {
    this.#saver = options.saver;
    this.#owners = options.owners;
    this.#leases = options.leases;
    this.#shards = options.shards;
    this.#service = options.service;
    this.#synchronization = options.synchronization;
  }

  /** The reply to a control request of `asker`; @throws what the reply is to carry. */
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
        return { stopped: this.#saver.stop(asker, textField(message.fields, "token", TOKEN_MAX)) };
      case "snapshot":
        return { shards: await this.#each((shard) => this.#snapshot(shard)) };
      case "hosts":
        return await this.#hosts();
      case "versions":
        return await this.#versions(message.fields);
    }
  }

  /** A repeated request finds the snapshot that the first one asked for, or joins it. */
  async #snapshot(shard: number): Promise<Fields> {
    const { position } = await this.#owners.check(shard, { blocks: [] });
    const reply = await this.#owners.ask(
      shard,
      "snapshot",
      { ...position },
      SNAPSHOT_MS,
      SNAPSHOT_ATTEMPT_MS,
    );
    return reply.fields;
  }

  async #versions(fields: Fields): Promise<Fields> {
    const parameters = await this.#service.parameters(parseVersionsRequest(fields));
    return versionsReply(
      await gatherVersions(parameters, (...asked) => this.#shardVersions(...asked)),
    );
  }

  async #shardVersions(
    shard: number,
    wanted: readonly WantedVersions[],
  ): Promise<readonly ShardVersions[]> {
    const request = shardVersionsRequest(wanted);
    const { fields } = await this.#owners.ask(shard, "versions", request, STATUS_MS);
    return parseShardVersionsReply(fields, wanted.length);
  }

  async #hosts(): Promise<Fields> {
    const [hosts, claims, trainers, shards, steps, declared] = await Promise.all([
      this.#leases.list(HOST_LEASES),
      this.#leases.list(SHARD_LEASES),
      this.#leases.keys(TRAINER_KEYS),
      this.#each((shard) => this.#status(shard)),
      this.#steps(),
      this.#service.declared(),
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
      ...steps,
    };
  }

  async #steps(): Promise<Fields> {
    const synchronization = this.#synchronization;
    if (synchronization.mode === "async") return { synchronization };
    const { verb: _verb, ...members } = toJournalRecord(await this.#service.members());
    return { synchronization, members };
  }

  /** A shard that does not answer is shown as what its silence means. */
  async #status(shard: number): Promise<Fields> {
    try {
      const { fields } = await this.#owners.ask(shard, "status", {}, STATUS_MS);
      // A status has more entries than a message; hosts of before sent as many as fitted.
      return fields["status"] === undefined ? fields : mapField(fields, "status");
    } catch (error) {
      const found = ensureError(error);
      // An owner that has failed answers everything with what it failed for.
      const state = STATES[found.code] ?? "failed";
      return { shard, state, error: found.toWire() };
    }
  }

  #each<Result>(run: (shard: number) => Promise<Result>): Promise<Result[]> {
    return Promise.all(Array.from({ length: this.#shards }, (_, shard) => run(shard)));
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
