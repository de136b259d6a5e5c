import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { Credit } from "../../actors/journal/credit.ts";
import { JournalReader } from "../../actors/journal/reader.ts";
import { ensureError, PserverError } from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/payload-limit.ts";
import type { TimedRecord } from "../source.ts";

/** Bytes of records that are requested ahead of their use. */
const AHEAD_BYTES = 16 * 1024 ** 2;

/** Time without a record after which reading gives up. */
const SILENCE_MS = 60_000;

/** Dependencies of {@link readRecords}. */
export interface ReadRecordsDeps {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly inboxPrefix: string;
  readonly shard: number;
  readonly stream: string;
  /** The error for a journal that delivers record `found` where it should deliver `expected`. */
  readonly missing: (expected: number, found: number) => Promise<PserverError>;
}

/**
 * Reads the records of a journal stream after `afterSeq` up to `toSeq`, in order, in batches of those that
 * have arrived. The caller may keep them.
 * @throws what `missing` makes; TIMEOUT after a minute without a record; the reason of `signal`.
 */
export async function* readRecords(
  deps: ReadRecordsDeps,
  afterSeq: number,
  toSeq: number,
  signal: AbortSignal,
): AsyncGenerator<readonly TimedRecord[], void, undefined> {
  if (afterSeq >= toSeq) return;
  const arrivals = new Arrivals(deps, afterSeq);
  const abort = (): void => arrivals.abort(ensureError(signal.reason));
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  arrivals.start();
  try {
    for (let last = afterSeq; last < toSeq; ) {
      const batch = await arrivals.next();
      const wanted = batch.filter(({ seq }) => seq <= toSeq);
      last = batch.at(-1)?.seq ?? last;
      if (wanted.length > 0) yield wanted;
      arrivals.taken(batch.length);
    }
  } finally {
    signal.removeEventListener("abort", abort);
    arrivals.stop();
  }
}

/** The records that have arrived and were not taken yet. */
class Arrivals {
  readonly #deps: ReadRecordsDeps;
  readonly #reader: JournalReader;
  #records: TimedRecord[] = [];
  #lastSeq: number;
  #failure: Promise<PserverError> | undefined;
  #wake: () => void = () => undefined;
  #isAborted = false;

  constructor(deps: ReadRecordsDeps, afterSeq: number) {
    const { connection } = deps;
    const credit = new Credit(AHEAD_BYTES, payloadBytesMaxOf(connection));
    this.#deps = deps;
    this.#lastSeq = afterSeq;
    this.#reader = new JournalReader({ ...deps, credit });
  }

  /** Takes what has arrived; waits for a record if there is none. @throws what ended the reading. */
  async next(): Promise<readonly TimedRecord[]> {
    if (this.#records.length === 0 && this.#failure === undefined) await this.#arrival();
    if (this.#records.length === 0 || this.#isAborted) throw await this.#failure;
    return this.#records.splice(0);
  }

  /** Lets as many more records arrive. */
  taken(records: number): void {
    this.#reader.taken(records);
  }

  stop(): void {
    this.#reader.stop();
  }

  /** Ends the reading at once, whatever has arrived. */
  abort(reason: PserverError): void {
    this.#isAborted = true;
    this.#fail(Promise.resolve(reason));
  }

  /** Begins to read; to be called once. */
  start(): void {
    const { stream } = this.#deps;
    void this.#reader.start({
      locate: () => Promise.resolve({ stream, startSeq: this.#lastSeq + 1 }),
      onRecord: (record) => this.#receive(record),
      onFailure: (error) => this.#fail(Promise.resolve(error)),
    });
  }

  #receive(record: TimedRecord): void {
    if (this.#failure !== undefined) return;
    const expected = this.#lastSeq + 1;
    if (record.seq !== expected) {
      this.#fail(this.#deps.missing(expected, record.seq));
      return;
    }
    this.#lastSeq = record.seq;
    this.#records.push(record);
    this.#wake();
  }

  #fail(failure: Promise<PserverError>): void {
    // It may be rejected before anybody asks for it.
    failure.catch(() => undefined);
    this.#failure = failure;
    this.#reader.stop();
    this.#wake();
  }

  /** Resolves with the next record or a failure. */
  async #arrival(): Promise<void> {
    const silent = setTimeout(() => this.#fail(Promise.resolve(this.#silence())), SILENCE_MS);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    clearTimeout(silent);
  }

  #silence(): PserverError {
    const { shard } = this.#deps;
    const seq = this.#lastSeq + 1;
    return new PserverError(
      "TIMEOUT",
      `shard ${shard}: record ${seq} was not read within ${SILENCE_MS} ms`,
      { shard, seq },
    );
  }
}
