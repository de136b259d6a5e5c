import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node";
import {
  type DeclaredParameter,
  decodeMessage,
  type ErrorCode,
  encodeMessage,
  type Fields,
  type HostRecord,
  integerField,
  type JobSubjects,
  knowledgeRequest,
  listField,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  parseKnowledgeReply,
  parsePosition,
  parseTrainersReply,
  quoteName,
  type RememberedTrainers,
  type ShardKnowledge,
  TRAINERS_MAX,
  TRAINERS_PER_MESSAGE_MAX,
  type TrainerSession,
  textField,
  throwIfError,
  trainersRequest,
} from "../../protocol/index.ts";
import { fromBrokerError, isNoResponders } from "../../transport/broker-error.ts";
import { mapConcurrently } from "../concurrent.ts";
import { neededBytes } from "../host/host-memory.ts";
import type { Journal } from "../journal/journal.ts";
import { readTakeOver, TakeOverWatch } from "../owner/take-over.ts";
import { type DeclaredUsage, JobSpace, type JournalLimits } from "./storage-plan.ts";

/** How long one request waits for a reply before it is repeated. */
const ATTEMPT_MS = 2_000;

/** How long a shard may be without an owner: longer than a lease, so that a successor can take over. */
const GRACE_MS = 20_000;

/** Grace time of a request for the memory of an owner's host. */
const MEMORY_MS = 2_000;

/** Grace time of a request for the trainers that a shard remembers; it is repeated soon. */
const TRAINERS_MS = 5_000;

/** Grace time of a request for a snapshot, which may have gigabytes. */
const SNAPSHOT_MS = 300_000;

/** Time between two requests for the same snapshot: a request may be lost, or its reply. */
const SNAPSHOT_ATTEMPT_MS = 5_000;

/** Pause before a missing owner is asked again. */
const RETRY_MS = 100;

/** A block by parameter, index and the epoch it must have. */
export type WantedBlock = readonly [parameter: string, index: number, epoch: number];

/** Reply of a shard's owner to a check. */
export interface CheckedBlocks {
  /** End of the shard's journal as the owner had folded it for the check. */
  readonly position: Position;
  readonly missing: readonly (readonly [parameter: string, index: number])[];
}

/** Requests to the owners of shards, about the broker's space, and about the hosts' memory. */
export interface Owners {
  /** Tells which of the blocks are missing once the shard's owner has folded up to `at`. */
  check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<CheckedBlocks>;
  /** The trainers that a shard remembers, with their sessions. */
  trainers(shard: number): Promise<RememberedTrainers>;
  /**
   * What a shard knows of its job. `graceMs`: how long the shard may be without an owner, 20 s by default; with 0 it
   * is asked once.
   */
  known(shard: number, graceMs?: number): Promise<ShardKnowledge>;
  /** Appends a host's record to a shard's journal. */
  append(shard: number, record: HostRecord): Promise<Position>;
  /**
   * Has a shard's owner store a snapshot of this position or later, unless there is one; returns the snapshot's
   * position.
   */
  snapshot(shard: number, at: Position): Promise<Fields>;
  /** Checks that the owners' hosts can hold so many more bytes of values, by shard. @throws NO_MEMORY */
  checkMemory(valueBytes: readonly number[]): Promise<void>;
  /** Has the broker reserve space for all that is declared in the job. @throws NO_SPACE */
  reserveSpace(declared: DeclaredUsage): Promise<void>;
}

/** Dependencies of {@link OwnersClient}. */
export interface OwnersClientDeps {
  readonly connection: NatsConnection;
  readonly subjects: JobSubjects;
  /** Id of this host. */
  readonly host: string;
  readonly manager: JetStreamManager;
  readonly settings: JournalLimits;
  readonly journalOf: (shard: number) => Journal;
}

/** Sends requests to the owners of shards, and appends host records to journals. */
export class OwnersClient implements Owners {
  readonly #deps: OwnersClientDeps;
  readonly #space: JobSpace;

  constructor(deps: OwnersClientDeps) {
    const { manager, subjects, settings: limits } = deps;
    this.#deps = deps;
    this.#space = new JobSpace({ manager, subjects, limits });
  }

  /**
   * Sends a request to the owner of a shard and repeats it while no owner answers. `attemptMs` is the time
   * before a repeat, 2 s by default; requests that take an owner long need more.
   * @throws NO_OWNER if none answers in `graceMs`, 20 s by default. From that on a take-over of the shard is waited for
   * as long as it makes progress. Else the error in the reply.
   */
  async ask(
    shard: number,
    verb: OwnerVerb,
    fields: Fields,
    graceMs: number = GRACE_MS,
    attemptMs: number = ATTEMPT_MS,
  ): Promise<Message> {
    const { connection, subjects, host } = this.#deps;
    const subject = subjects.owner(shard, host, verb);
    const payload = encodeMessage(fields);
    const takeOver = new TakeOverWatch();
    // Who gives less than the usual grace time can do without an answer.
    const awaitsTakeOver = graceMs >= GRACE_MS;
    for (let tries = 1; ; tries++) {
      try {
        // Without any grace time the owner is asked once, and has the time of one request.
        const leftMs = tries === 1 ? attemptMs : Math.max(1, graceMs - takeOver.stalledMs);
        const timeout = Math.min(attemptMs, leftMs);
        const reply = await connection.request(subject, payload, { timeout });
        const message = decodeMessage(reply.data);
        throwIfError(message.fields);
        return message;
      } catch (error) {
        if (!isUnanswered(error) && !isMoving(error)) {
          throw fromBrokerError(error, `asking shard ${shard}`);
        }
        const progress = error instanceof PserverError ? readTakeOver(error.details) : undefined;
        if (progress !== undefined && awaitsTakeOver) takeOver.note([progress]);
        if (takeOver.stalledMs >= graceMs) throw noOwner(shard, graceMs, error);
        await delay(RETRY_MS);
      }
    }
  }

  async check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<CheckedBlocks> {
    const at = want.at ?? { generation: 1, seq: 0 };
    const { fields } = await this.ask(shard, "check", { ...at, blocks: want.blocks });
    const missing = listField(fields, "missing", want.blocks.length).map((row) => {
      const [parameter, index] = Array.isArray(row) ? (row as unknown[]) : [];
      const block = { parameter, index };
      return [textField(block, "parameter"), integerField(block, "index")] as const;
    });
    return { position: parsePosition(fields), missing };
  }

  async trainers(shard: number): Promise<RememberedTrainers> {
    const all: TrainerSession[] = [];
    let toldUpTo = 0;
    // Trainers that join while pages are read can add one page.
    for (let pages = 0; pages <= TRAINERS_MAX / TRAINERS_PER_MESSAGE_MAX; pages++) {
      const request = trainersRequest(all.at(-1)?.[0] ?? "");
      const { fields } = await this.ask(shard, "trainers", request, TRAINERS_MS);
      const page = parseTrainersReply(fields);
      all.push(...page.trainers);
      toldUpTo = page.toldUpTo;
      if (page.trainers.length < TRAINERS_PER_MESSAGE_MAX) break;
    }
    return { trainers: all, toldUpTo };
  }

  async known(shard: number, graceMs?: number): Promise<ShardKnowledge> {
    const parameters: DeclaredParameter[] = [];
    for (;;) {
      const request = knowledgeRequest(parameters.at(-1)?.name ?? "");
      const { fields } = await this.ask(shard, "known", request, graceMs);
      const { more, ...page } = parseKnowledgeReply(fields);
      parameters.push(...page.parameters);
      if (!more) return { ...page, parameters };
    }
  }

  append(shard: number, record: HostRecord): Promise<Position> {
    return this.#deps.journalOf(shard).append(record);
  }

  /** Asks again for the snapshot that the first request started, finished or not, if a reply does not come. */
  async snapshot(shard: number, { generation, seq }: Position): Promise<Fields> {
    const at = { generation, seq };
    const reply = await this.ask(shard, "snapshot", at, SNAPSHOT_MS, SNAPSHOT_ATTEMPT_MS);
    return reply.fields;
  }

  async reserveSpace(declared: DeclaredUsage): Promise<void> {
    await this.#space.reserve(declared);
  }

  async checkMemory(valueBytes: readonly number[]): Promise<void> {
    const added = [...valueBytes.entries()].filter(([, bytes]) => bytes > 0);
    const hosts = new Map<string, { neededBytes: number; freeBytes: number }>();
    await mapConcurrently(added, async ([shard, bytes]) => {
      const owner = await this.#memoryOf(shard);
      if (owner === undefined) return;
      const known = hosts.get(owner.host);
      hosts.set(owner.host, {
        neededBytes: neededBytes(bytes) + (known?.neededBytes ?? 0),
        freeBytes: Math.min(owner.freeBytes, known?.freeBytes ?? Number.POSITIVE_INFINITY),
      });
    });
    for (const [host, { neededBytes: expected, freeBytes: received }] of hosts) {
      if (expected <= received) continue;
      throw new PserverError(
        "NO_MEMORY",
        `expected ${expected} bytes of free memory for new blocks; host ${quoteName(host)} has ${received}`,
        { host, expected, received },
      );
    }
  }

  /** Asks for the free memory of a shard's host; undefined if none answers. */
  async #memoryOf(shard: number): Promise<{ host: string; freeBytes: number } | undefined> {
    try {
      const { fields } = await this.ask(shard, "memory", {}, MEMORY_MS, MEMORY_MS);
      return { host: textField(fields, "host"), freeBytes: integerField(fields, "freeBytes") };
    } catch (error) {
      if (error instanceof PserverError && error.code === "NO_OWNER") return undefined;
      throw error;
    }
  }
}

function noOwner(shard: number, graceMs: number, cause: unknown): PserverError {
  const isTakingOver = cause instanceof PserverError && cause.code === "NO_OWNER";
  const text = isTakingOver
    ? `${cause.message}, without progress for ${graceMs} ms`
    : `shard ${shard}: no host has answered for ${graceMs} ms; start one with "pserver host"`;
  return new PserverError("NO_OWNER", text, { shard }, { cause });
}

function isUnanswered(error: unknown): boolean {
  return error instanceof TimeoutError || isNoResponders(error);
}

/** Answers of an owner that will be another soon. */
const MOVING: readonly ErrorCode[] = ["NOT_OWNER", "NO_OWNER", "BUSY"];

function isMoving(error: unknown): boolean {
  return error instanceof PserverError && MOVING.includes(error.code);
}
