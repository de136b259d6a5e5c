import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  type HostRecord,
  integerField,
  type JobSubjects,
  listField,
  type Message,
  type OwnerVerb,
  type Position,
  PserverError,
  parsePosition,
  parseTrainersReply,
  quoteName,
  type RememberedTrainers,
  TRAINERS_MAX,
  TRAINERS_PER_MESSAGE_MAX,
  type TrainerSession,
  textField,
  throwIfError,
  trainersRequest,
} from "../../protocol/index.ts";
import { fromBrokerError, isNoResponders } from "../../transport/broker-error.ts";
import { mapConcurrently } from "../concurrent.ts";
import { probeStorage } from "../jetstream/storage-probe.ts";
import { StorageQueries } from "../jetstream/storage-queries.ts";
import type { Journal } from "../journal/journal.ts";
import type { Owners, WantedBlock } from "../lifecycle/owners.ts";
import { neededBytes } from "../memory/host-memory.ts";

/** How long one request waits for an answer before it is repeated. */
const ATTEMPT_MS = 2_000;

/** How long an owner may be missing: longer than a lease, so that a successor can take over. */
const PATIENCE_MS = 20_000;

/** How long an owner may take to say what memory its host has. */
const MEMORY_MS = 2_000;

/** How long an owner may take to say whom it remembers; it is asked again soon if it does not. */
const TRAINERS_MS = 5_000;

/** Pause before an owner that is missing is asked again. */
const RETRY_MS = 100;

/** Snapshots need room beside the state while an old one is kept: design, snapshots. */
const SNAPSHOT_FACTOR = 2.5;

/** Asks the owners of shards, wherever they are, and appends host records to journals. */
export class OwnersClient implements Owners {
  readonly #connection: NatsConnection;
  readonly #storage: StorageQueries;
  readonly #subjects: JobSubjects;
  readonly #host: string;
  readonly #journalOf: (shard: number) => Journal;

  constructor(options: {
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
    readonly host: string;
    readonly journalOf: (shard: number) => Journal;
  }) {
    this.#connection = options.connection;
    const { manager, subjects } = options;
    this.#storage = new StorageQueries((bytes) => probeStorage(manager, subjects, "file", bytes));
    this.#subjects = subjects;
    this.#host = options.host;
    this.#journalOf = options.journalOf;
  }

  /**
   * Asks the owner of a shard, again and again while none answers.
   * @throws NO_OWNER if none does in 20 s (or `patienceMs`), or the error that the owner answers.
   * What takes an owner long needs more than 2 s (`attemptMs`) before it is asked again.
   */
  async ask(
    shard: number,
    verb: OwnerVerb,
    fields: Fields,
    patienceMs: number = PATIENCE_MS,
    attemptMs: number = ATTEMPT_MS,
  ): Promise<Message> {
    const subject = this.#subjects.owner(shard, this.#host, verb);
    const payload = encodeMessage(fields);
    const deadline = performance.now() + patienceMs;
    for (;;) {
      try {
        const timeout = Math.max(1, Math.min(attemptMs, deadline - performance.now()));
        const reply = await this.#connection.request(subject, payload, { timeout });
        const message = decodeMessage(reply.data);
        throwIfError(message.fields);
        return message;
      } catch (error) {
        if (!isUnanswered(error) && !isMoving(error))
          throw fromBrokerError(error, `asking shard ${shard}`);
        if (performance.now() >= deadline) throw this.#noOwner(shard, patienceMs, error);
        await delay(RETRY_MS);
      }
    }
  }

  async check(
    shard: number,
    want: { readonly blocks: readonly WantedBlock[]; readonly at?: Position },
  ): Promise<{ position: Position; missing: readonly (readonly [string, number])[] }> {
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
    // Trainers that come while it is asked for can make the last page follow one page later.
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

  append(shard: number, record: HostRecord): Promise<Position> {
    return this.#journalOf(shard).append(record);
  }

  async checkSpace(stateBytes: number): Promise<void> {
    const bytes = Math.ceil(stateBytes * SNAPSHOT_FACTOR);
    if (await this.#storage.fits(bytes)) return;
    throw new PserverError(
      "NO_SPACE",
      `the broker cannot hold snapshots of ${stateBytes} bytes of values: they take ${bytes} bytes`,
      { expected: bytes },
    );
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

  /** What the host of a shard has free; undefined if none answers, and then nothing is known. */
  async #memoryOf(shard: number): Promise<{ host: string; freeBytes: number } | undefined> {
    try {
      const { fields } = await this.ask(shard, "memory", {}, MEMORY_MS, MEMORY_MS);
      return { host: textField(fields, "host"), freeBytes: integerField(fields, "freeBytes") };
    } catch (error) {
      if (error instanceof PserverError && error.code === "NO_OWNER") return undefined;
      throw error;
    }
  }

  #noOwner(shard: number, patienceMs: number, cause: unknown): PserverError {
    return new PserverError(
      "NO_OWNER",
      `shard ${shard}: no host has answered for ${patienceMs} ms; start one with "pserver host"`,
      { shard },
      { cause },
    );
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof TimeoutError || isNoResponders(error);
}

function isMoving(error: unknown): boolean {
  return error instanceof PserverError && (error.code === "NOT_OWNER" || error.code === "BUSY");
}
