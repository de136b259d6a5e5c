import { setTimeout as delay } from "node:timers/promises";
import {
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamState,
} from "@nats-io/jetstream";
import {
  type ErrorCode,
  encodeHostRecord,
  ensureError,
  type HostRecord,
  isSealed,
  JETSTREAM_ERRORS,
  type JobSubjects,
  type Position,
  PserverError,
  type Synchronization,
} from "../../protocol/index.ts";
import {
  fromBrokerError,
  fromStoreError,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import { type ReplicaDamage, soundCopy } from "./replicas.ts";
import { brokerCall, deleteStream } from "./streams.ts";

/** The state of a shard's journal stream. */
export interface JournalInfo {
  /** Creation time of the stream; it distinguishes a new stream from an old one of the same name. */
  readonly created: string;
  readonly firstSeq: number;
  /** The last sequence that the stream has assigned, perhaps to a record that could not be stored. */
  readonly lastSeq: number;
  /**
   * Sequences between the first and the last at which the stream reports no record, ascending. A record damaged in
   * the store is usually not among them: the stream still counts it.
   */
  readonly missing: readonly number[];
  /**
   * Sequences that the broker reports as lost since its start; empty if it has found damage but cannot name them;
   * undefined if it knows of no loss.
   */
  readonly lost: readonly number[] | undefined;
  readonly bytes: number;
  readonly bytesMax: number;
}

/** Settings of a job's journals. */
export interface JournalSettings {
  readonly storage: "file" | "memory";
  /** Bytes of one shard's journal beyond which the broker refuses records. */
  readonly bytesMax: number;
  readonly replicas: number;
  /** Version of the rules of a new shard. */
  readonly rules: number;
  /** Synchronization of the job's trainers; the first record names it. */
  readonly synchronization: Synchronization;
}

/** Dependencies of {@link Journal}. */
export interface JournalDeps {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly subjects: JobSubjects;
  readonly settings: JournalSettings;
  readonly shard: number;
}

/**
 * Reads a record of a journal stream from the leader; undefined if the stream does not hold it. It comes in JSON,
 * whatever its subject.
 * @throws the JetStream client's errors.
 */
export async function storedRecord(
  { streams }: Pick<JetStreamManager, "streams">,
  stream: string,
  seq: number,
): Promise<JournalRecord | undefined> {
  try {
    const stored = await streams.getMessage(stream, { seq });
    return stored === null
      ? undefined
      : { seq: stored.seq, subject: stored.subject, payload: stored.data };
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return undefined;
    throw error;
  }
}

/** Creates, inspects and removes the journal streams of one shard. `JournalReader` reads a journal in order. */
export class Journal {
  readonly shard: number;
  readonly #deps: JournalDeps;
  readonly #subjects: JobSubjects;
  readonly #streams: JetStreamManager["streams"];

  constructor(deps: JournalDeps) {
    this.shard = deps.shard;
    this.#deps = deps;
    this.#subjects = deps.subjects;
    this.#streams = deps.manager.streams;
  }

  /** Version of the rules of a new shard. */
  get rules(): number {
    return this.#deps.settings.rules;
  }

  /** Whether several brokers keep the journal, so that more than one may take itself for the leader. */
  get isReplicated(): boolean {
    return this.replicas > 1;
  }

  /** How many brokers keep the journal. */
  get replicas(): number {
    return this.#deps.settings.replicas;
  }

  /** Returns the name of a generation's stream. */
  stream(generation: number): string {
    return this.#subjects.journalStream(this.shard, generation);
  }

  /**
   * Reads the state of the stream as the answering broker knows it, see {@link majorityInfo}; undefined without a
   * stream.
   * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, …
   */
  async info(generation: number): Promise<JournalInfo | undefined> {
    return await this.#ifThere(generation, () => this.#info(this.stream(generation)));
  }

  /** Reads the last sequence that the stream has assigned; undefined without a stream. Cheaper than {@link info}. */
  async lastSeq(generation: number): Promise<number | undefined> {
    const stream = this.stream(generation);
    return await this.#ifThere(
      generation,
      async () => (await this.#streams.info(stream)).state.last_seq,
    );
  }

  /**
   * Whether the leader of the cluster lists the stream. A server that has just started does not find
   * streams that it has not read from its disk yet.
   */
  async #isListed(generation: number): Promise<boolean> {
    const { shard } = this;
    return await brokerCall(`looking for the journal of shard ${shard}`, { shard }, async () => {
      const name = this.stream(generation);
      for await (const listed of this.#streams.names()) if (listed === name) return true;
      return false;
    });
  }

  /**
   * Creates the stream of a generation, or completes an interrupted creation. With `rules`, its first
   * record, stored before any trainer can publish, is a `rules` record of that version and of the
   * job's synchronization.
   * @throws NO_SPACE if the broker cannot hold it.
   */
  async open(generation: number, rules?: number): Promise<JournalInfo> {
    const { storage, bytesMax, replicas, synchronization } = this.#deps.settings;
    const name = this.stream(generation);
    const hostsOnly = { subjects: [this.#subjects.hostLog(this.shard, "rules")] };
    const details = { shard: this.shard, bytesMax };
    return await brokerCall(`making the journal of shard ${this.shard}`, details, async () => {
      if ((await this.info(generation)) === undefined) {
        if (storage === "memory") await this.#removeOlder(generation);
        await this.#streams.add({
          name,
          ...hostsOnly,
          storage: storage === "file" ? StorageType.File : StorageType.Memory,
          retention: RetentionPolicy.Limits,
          // A full journal refuses new records; dropping the oldest would leave a silent gap.
          discard: DiscardPolicy.New,
          max_bytes: bytesMax,
          num_replicas: replicas,
          allow_direct: false,
        });
      }
      if (rules !== undefined) await this.append({ verb: "rules", rules, synchronization });
      await this.#streams.update(name, { subjects: [this.#subjects.shardLog(this.shard)] });
      return await this.#info(name);
    });
  }

  /**
   * Makes way for a journal of a later generation: takes the subjects from the newest abandoned journal on file,
   * which keeps its records and takes no more; removes older ones. Journals in memory are removed when the next one
   * is opened.
   * @returns the states of the abandoned journals that existed, by generation.
   */
  async setAside(generations: readonly number[]): Promise<ReadonlyMap<number, JournalInfo>> {
    const abandoned = new Map<number, JournalInfo>();
    if (this.#deps.settings.storage === "memory") return abandoned;
    for (const generation of [...new Set(generations)].sort((a, b) => b - a)) {
      const info = await this.info(generation);
      if (info === undefined) continue;
      if (abandoned.size > 0) await this.remove([generation]);
      else await this.#keep(generation, info);
      // Records may have been stored until it took no more.
      abandoned.set(generation, (await this.info(generation)) ?? info);
    }
    return abandoned;
  }

  /** Removes the streams of abandoned generations; one that is gone already counts as removed. */
  async remove(generations: readonly number[]): Promise<void> {
    for (const generation of generations) {
      const { shard } = this;
      const action = `removing an old journal of shard ${shard}`;
      await brokerCall(action, { shard, generation }, () =>
        deleteStream(this.#deps.manager, this.stream(generation)),
      );
    }
  }

  /** Reads one record from the leader; undefined if the stream does not hold it. */
  async record(generation: number, seq: number): Promise<JournalRecord | undefined> {
    try {
      return await storedRecord(this.#deps.manager, this.stream(generation), seq);
    } catch (error) {
      throw fromBrokerError(error, `record ${seq} of shard ${this.shard}`, {
        shard: this.shard,
        seq,
      });
    }
  }

  /** Reads one record from the copies of all brokers in turn, until one `isSound`; undefined if none is. */
  async soundCopy(
    generation: number,
    seq: number,
    isSound: (record: JournalRecord) => boolean,
  ): Promise<JournalRecord | undefined> {
    const { shard } = this;
    return await brokerCall(`record ${seq} of shard ${shard}`, { shard, seq }, () =>
      soundCopy(this.#deps.manager, this.stream(generation), seq, isSound),
    );
  }

  /** Returns the name of the broker that leads the journal; undefined if it belongs to no cluster or says none. */
  async leader(generation: number): Promise<string | undefined> {
    const { shard } = this;
    return await brokerCall(`journal of shard ${shard}`, { shard }, async () => {
      const { cluster } = await this.#streams.info(this.stream(generation));
      return cluster?.leader;
    });
  }

  /** Whether a stream still begins with the record of its rules. */
  async beginsWithRules(generation: number): Promise<boolean> {
    const first = await this.record(generation, 1);
    return first?.subject === this.#subjects.hostLog(this.shard, "rules");
  }

  /** Appends a host's record; the client repeats that if the answer is lost, and all host records are idempotent. */
  async append(record: HostRecord): Promise<Position> {
    const subject = this.#subjects.hostLog(this.shard, record.verb);
    try {
      const { client } = this.#deps;
      const ack = await client.publish(subject, encodeHostRecord(record));
      return { generation: this.#subjects.parseJournalStream(ack.stream).generation, seq: ack.seq };
    } catch (error) {
      throw fromStoreError(error, `appending ${record.verb} to shard ${this.shard}`, {
        shard: this.shard,
      });
    }
  }

  /** Removes the records below `seq`; only from the beginning, because a gap would look like damage. */
  async purgeBelow(generation: number, seq: number): Promise<void> {
    // There is nothing below record 1, and a purge below 0 would remove everything.
    if (seq <= 1) return;
    const { shard } = this;
    await brokerCall(`purging shard ${shard} below ${seq}`, { shard }, () =>
      this.#streams.purge(this.stream(generation), { seq }),
    );
  }

  /** Returns the newest generation whose stream has the subjects of the journal; 0 if there is none. */
  async newestGeneration(): Promise<number> {
    const { shard } = this;
    return await brokerCall(`looking for journals of shard ${shard}`, { shard }, async () =>
      Math.max(0, ...(await this.#generations())),
    );
  }

  /**
   * Removes the streams of older generations. One created by an owner after it was deposed would keep
   * the subjects from the present one.
   */
  async #removeOlder(generation: number): Promise<void> {
    await this.remove((await this.#generations()).filter((found) => found < generation));
  }

  /** Lists the generations whose streams have the journal's subjects. */
  async #generations(): Promise<number[]> {
    const generations: number[] = [];
    for await (const name of this.#streams.names(this.#subjects.hostLog(this.shard, "rules"))) {
      generations.push(this.#subjects.parseJournalStream(name).generation);
    }
    return generations;
  }

  /** Gives a stream a subject that nobody publishes to, and reduces its reservation to what it holds. */
  async #keep(generation: number, { bytes }: JournalInfo): Promise<void> {
    const subjects = [this.#subjects.leftJournal(this.shard, generation)];
    const { shard } = this;
    const config = { subjects, max_bytes: Math.max(bytes, 1) };
    await brokerCall(`leaving a journal of shard ${shard}`, { shard, generation }, () =>
      this.#streams.update(this.stream(generation), config),
    );
  }

  async #ifThere<Result>(
    generation: number,
    look: () => Promise<Result>,
  ): Promise<Result | undefined> {
    try {
      return await look();
    } catch (error) {
      const isMissing = jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND;
      // A single broker knows its own streams.
      if (isMissing && !(this.isReplicated && (await this.#isListed(generation)))) return undefined;
      throw fromBrokerError(error, `journal of shard ${this.shard}`, { shard: this.shard });
    }
  }

  async #info(stream: string): Promise<JournalInfo> {
    const info = await this.#streams.info(stream, { deleted_details: true });
    const { created, config } = info;
    const state: StreamState & { lost?: { msgs: number[] | null } } = info.state;
    return {
      created,
      firstSeq: state.first_seq,
      lastSeq: state.last_seq,
      missing: state.deleted ?? [],
      lost: state.lost && (state.lost.msgs ?? []),
      bytes: state.bytes,
      bytesMax: config.max_bytes,
    };
  }
}

// The leader of a stream answers questions by itself. One that the network has separated from the other
// replicas goes on for up to some seconds after they have elected another, and does not know what that one
// has acknowledged. A record is acknowledged only when a majority has stored it, so an answer that covers a
// record appended just before covers everything acknowledged before. A journal that is not replicated has no
// second leader, and its broker's answers are taken as they are.

/** A record that changes nothing under any version of the rules: no session has a number below 1. */
const BARRIER: HostRecord = { verb: "floor", session: 0 };

/**
 * How often a leader is asked until a former one must have heard of its successor, and the pause between two
 * questions.
 */
const QUESTIONS_MAX = 100;
const PAUSE_MS = 100;

/**
 * Reads the state of the stream, with every record that was acknowledged before the call; undefined without a stream.
 * Appends a record that changes nothing to a replicated journal. If the journal can take none, because it is full or
 * its broker cannot write, the leader's answer is taken as it is.
 * @throws JETSTREAM_UNAVAILABLE if no leader with a majority answers, and the errors of {@link Journal.info}.
 */
export async function majorityInfo(
  journal: Pick<Journal, "shard" | "isReplicated" | "info" | "append">,
  generation: number,
): Promise<JournalInfo | undefined> {
  const leaderInfo = await journal.info(generation);
  if (leaderInfo === undefined || !journal.isReplicated) return leaderInfo;
  const barrier = await appendBarrier(journal);
  // Nothing is added to a generation that another one has replaced.
  if (barrier?.generation !== generation) return leaderInfo;
  const info = await askUntilExpected(
    () => journal.info(generation),
    (found) => found === undefined || found.lastSeq >= barrier.seq,
  );
  if (info === undefined || info.lastSeq >= barrier.seq) return info;
  const { shard } = journal;
  throw new PserverError(
    "JETSTREAM_UNAVAILABLE",
    `journal of shard ${shard}: its leader knows record ${info.lastSeq} as the last one; ` +
      `expected at least ${barrier.seq}, which the broker has acknowledged`,
    { shard, expected: barrier.seq, received: info.lastSeq },
  );
}

/**
 * Reads the last sequence of a position's generation. If it is below the position, a record is appended to make sure.
 * Undefined without a stream, or if the journal takes no record.
 */
export async function majorityLastSeq(
  journal: Pick<Journal, "isReplicated" | "lastSeq" | "append">,
  { generation, seq }: Position,
): Promise<number | undefined> {
  const lastSeq = await journal.lastSeq(generation);
  if (lastSeq === undefined || lastSeq >= seq || !journal.isReplicated) return lastSeq;
  const barrier = await appendBarrier(journal);
  return barrier?.generation === generation ? barrier.seq - 1 : undefined;
}

/** How to tell a sound record, and whom to tell of a copy of the journal that has another one. */
export interface SoundRecord {
  readonly isSound?: (record: JournalRecord) => boolean;
  readonly onReplicaDamaged?: ((damage: ReplicaDamage) => unknown) | undefined;
}

/**
 * Reads one record that the stream is known to count; undefined if it cannot be read. The leader's copy of a
 * replicated journal may be a former one's, or damaged: if it has no sound record, the other copies are read. If none
 * has one either, what the leader holds is returned.
 */
export async function majorityRecord(
  journal: Pick<Journal, "isReplicated" | "record" | "soundCopy" | "leader">,
  generation: number,
  seq: number,
  { isSound = () => true, onReplicaDamaged }: SoundRecord = {},
): Promise<JournalRecord | undefined> {
  const read = (): Promise<JournalRecord | undefined> => journal.record(generation, seq);
  const record = await read();
  if (!journal.isReplicated || (record !== undefined && isSound(record))) return record;
  const copy = await journal.soundCopy(generation, seq, isSound);
  if (copy === undefined) return await askUntilExpected(read, (found) => found !== undefined);
  const broker = await journal.leader(generation);
  if (record !== undefined && broker !== undefined) {
    onReplicaDamaged?.({ broker, from: seq, to: seq, isOther: isSealed(record.payload) });
  }
  return copy;
}

/** Errors of a leader that can store nothing; the owner that takes over makes room, or an operator does. */
const STORES_NOTHING: readonly ErrorCode[] = ["JOURNAL_FULL", "JOURNAL_FAULT"];

/** Appends the record that changes nothing, and returns its position; undefined if the journal takes no records. */
async function appendBarrier(journal: Pick<Journal, "append">): Promise<Position | undefined> {
  try {
    return await journal.append(BARRIER);
  } catch (error) {
    if (STORES_NOTHING.includes(ensureError(error).code)) return undefined;
    throw error;
  }
}

/** Asks until an answer is as expected, as long as a former leader may be answering. */
async function askUntilExpected<Answer>(
  ask: () => Promise<Answer>,
  isExpected: (answer: Answer) => boolean,
): Promise<Answer> {
  for (let questions = 1; ; questions++) {
    const answer = await ask();
    if (isExpected(answer) || questions === QUESTIONS_MAX) return answer;
    await delay(PAUSE_MS);
  }
}
