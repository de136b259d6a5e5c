import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { JournalRecord, Settled, Shard } from "../fold/shard.ts";
import type { Credit } from "../journal/credit.ts";
import type { Journal } from "../journal/journal.ts";
import { JournalReader } from "../journal/reader.ts";
import { isFinal } from "../journal/retry-limit.ts";
import { Doubts } from "./doubts.ts";
import { type Hole, journalDamaged } from "./hole.ts";
import type { Pace } from "./pace.ts";

/** Bytes that the broker stores for a record beside its subject and payload. */
const RECORD_OVERHEAD_BYTES = 30;

/** How long records may come in before those among them that cannot be read are read again. */
const COLLECT_MS = 5;

/** What a {@link FoldLoop} tells its owner. */
export interface FoldLoopEvents {
  /** Says, before each reading, where the journal continues; may replace the journal. */
  readonly locate: () => Promise<{ stream: string; generation: number }>;
  /** Whether the fold may go on; asked before each record, and again after {@link FoldLoop.poke}. */
  readonly mayFold: () => boolean;
  readonly onSettled: (settled: Settled) => void;
  /** Called soon after records, once for several, with the bytes they have in the journal. */
  readonly onAdvanced: (bytes: number) => void;
  /**
   * Called when records are missing before the next one. Once it settles they have been passed over
   * and the fold goes on; a final error ends it, any other has the journal read anew.
   */
  readonly onHole: (hole: Hole) => Promise<void>;
  /** Called once when folding cannot go on. */
  readonly onFailure: (error: PserverError) => void;
}

/** Feeds a shard the records of its journal, in order, and tells what became of them. */
export class FoldLoop {
  readonly #shard: Shard;
  readonly #journal: Journal;
  readonly #events: FoldLoopEvents;
  readonly #reader: JournalReader;
  readonly #doubts: Doubts = new Doubts();
  #queue: JournalRecord[] = [];
  /** Whether something else has to end before the next record. */
  #held = false;
  #stopped = false;
  readonly #pace: Pace;
  /** Bytes of the records that the owner has not been told of; undefined for no records. */
  #untoldBytes: number | undefined;

  constructor(options: {
    readonly shard: Shard;
    readonly journal: Journal;
    readonly connection: NatsConnection;
    readonly manager: JetStreamManager;
    readonly inboxPrefix: string;
    readonly credit: Credit;
    readonly pace: Pace;
    readonly events: FoldLoopEvents;
  }) {
    const { connection, manager, inboxPrefix, credit } = options;
    this.#shard = options.shard;
    this.#journal = options.journal;
    this.#events = options.events;
    this.#pace = options.pace;
    this.#reader = new JournalReader({
      connection,
      manager,
      inboxPrefix,
      credit,
      locate: () => this.#locate(),
      onRecord: (record) => {
        this.#queue.push(record);
        this.poke();
        // The payload is valid during this call only.
        if (this.#queue.at(-1) === record) {
          this.#queue[this.#queue.length - 1] = {
            ...record,
            payload: Uint8Array.from(record.payload),
          };
        }
      },
      onFailure: (error) => this.#fail(error),
    });
  }

  /** Starts to read. */
  start(): Promise<void> {
    return this.#reader.reset();
  }

  /** Reads anew after the connection was lost. */
  reconnected(): Promise<void> {
    return this.#reader.reconnected();
  }

  /** Folds what is queued as far as it may. */
  poke(): void {
    if (this.#held || this.#stopped) return;
    let folded = 0;
    for (const record of this.#queue) {
      if (!this.#events.mayFold()) break;
      if (record.seq > this.#shard.seq + 1) {
        const hole = { from: this.#shard.seq + 1, to: record.seq - 1 };
        void this.#hold(() => this.#events.onHole(hole));
        break;
      }
      if (!this.#fold(record)) break;
      folded++;
    }
    this.#queue = folded === this.#queue.length ? [] : this.#queue.slice(folded);
    if (folded > 0 && !this.#stopped) this.#reader.taken(folded);
  }

  /** Stops folding at once. */
  stop(): void {
    this.#stopped = true;
    this.#reader.stop();
    this.#queue = [];
  }

  async #locate(): Promise<{ stream: string; startSeq: number }> {
    // What is queued was read from a journal that is about to be checked: read it again.
    this.#queue = [];
    const { stream } = await this.#events.locate();
    return { stream, startSeq: this.#shard.seq + 1 };
  }

  /** Folds one record; false if it must be read again, or folding has ended. */
  #fold(record: JournalRecord): boolean {
    const reread = this.#doubts.settles(record);
    try {
      const { seq, subject, payload } = record;
      const settled = this.#shard.apply({ seq, subject, payload, reread });
      if (settled !== undefined) this.#events.onSettled(settled);
    } catch (error) {
      const found = ensureError(error);
      if (found.code === "BAD_CHECKSUM" && !reread) void this.#hold(() => this.#readAgain());
      else this.#fail(found);
      return false;
    }
    const bytes = record.payload.length + record.subject.length + RECORD_OVERHEAD_BYTES;
    if (this.#untoldBytes === undefined) this.#pace.soon(() => this.#tell());
    this.#untoldBytes = (this.#untoldBytes ?? 0) + bytes;
    return true;
  }

  #tell(): void {
    const bytes = this.#untoldBytes ?? 0;
    this.#untoldBytes = undefined;
    if (!this.#stopped) this.#events.onAdvanced(bytes);
  }

  /**
   * A record that cannot be read may have been hurt on the way, so it is delivered once more. With it
   * are those behind it that have come by then: one more delivery serves for all of them.
   */
  async #readAgain(): Promise<void> {
    await delay(COLLECT_MS);
    if (this.#stopped) return;
    if (!this.#doubts.note(this.#queue)) {
      throw journalDamaged(this.#journal.shard, this.#shard.seq + 1, undefined);
    }
    await this.#reader.reset();
  }

  /** Folds nothing until `work` is done. */
  async #hold(work: () => Promise<void>): Promise<void> {
    this.#held = true;
    try {
      await work();
    } catch (error) {
      const found = ensureError(error);
      // A broker that is configured without JetStream for a while ends no shard either.
      const passes = found.retryable || found.code === "NO_JETSTREAM";
      if (passes && !isFinal(found)) void this.#reader.reset();
      else this.#fail(found);
    } finally {
      this.#held = false;
      this.poke();
    }
  }

  #fail(error: PserverError): void {
    if (this.#stopped) return;
    this.stop();
    this.#events.onFailure(error);
  }
}
