import type { NatsConnection } from "@nats-io/transport-node";
import {
  type Allocate,
  busy,
  encodeError,
  ensureError,
  PserverError,
} from "../../protocol/index.ts";
import type { BufferPool } from "../../transport/buffer-pool.ts";
import { publishBulk } from "../../transport/bulk-transport.ts";
import { FairQueue } from "../requests/fair-queue.ts";
import { TURN_MS } from "../requests/queue-limits.ts";
import { Turn } from "../requests/turn.ts";

/** Bytes of replies on their way to the broker; nats.js itself would buffer without a bound. */
const IN_FLIGHT_BYTES_MAX = 6 * 1024 * 1024;

/** After so many bytes the broker is asked whether it has taken them. */
const PROBE_BYTES = 2 * 1024 * 1024;

/** Replies that may wait their turn; then askers are told BUSY. */
const QUEUED = { each: 4_096, all: 16_384 } as const;

/** Makes a reply; what it gives belongs to the responder. Large ones are made in `allocate`. */
export type MakeReply = (allocate: Allocate) => Uint8Array;

/** Whom a reply is for, and where it goes. */
export interface Asker {
  /** The trainer that asks, or host; a host's key is like no trainer's. */
  readonly from: string;
  readonly reply: string;
}

/** One reply to make when its turn comes. */
interface Task {
  readonly reply: string;
  readonly make: MakeReply;
}

/**
 * Sends the replies of a worker, a bounded number of bytes at a time: those to one trainer in order, and
 * trainers in turn, each as many bytes as any other. A reply is made only when it can be sent, so a
 * waiting one costs no memory and carries the newest values.
 */
export class Responder {
  readonly #connection: NatsConnection;
  readonly #queue: FairQueue<Task> = new FairQueue(QUEUED);
  readonly #turn: Turn = new Turn(TURN_MS, () => this.#drain());
  #inFlightBytes = 0;
  #unprobedBytes = 0;
  #unprobed: Uint8Array[] = [];
  readonly #pool: BufferPool;

  /** `pool`: where the memory of large replies comes from. */
  constructor(connection: NatsConnection, pool: BufferPool) {
    this.#connection = connection;
    this.#pool = pool;
  }

  /**
   * Sends what `make` returns, or the error that it throws, now or when there is room.
   * @returns whether `make` was or will be called; else the asker has been told BUSY.
   */
  respond({ from, reply }: Asker, make: MakeReply): boolean {
    if (!this.#queue.push(from, { reply, make })) {
      const expected = QUEUED.each;
      const text = `expected at most ${expected} waiting replies of a trainer, and room for all`;
      this.#send(reply, encodeError(busy(text, { expected })));
      return false;
    }
    this.#drain();
    return true;
  }

  #drain(): void {
    while (this.#inFlightBytes < IN_FLIGHT_BYTES_MAX && !this.#turn.isOver) {
      const served = this.#queue.next();
      if (served === undefined) return;
      this.#turn.begin();
      const bytes = this.#make(served.task.make);
      this.#queue.charge(served.trainer, bytes.length);
      this.#send(served.task.reply, bytes);
    }
  }

  #send(reply: string, bytes: Uint8Array): void {
    if (this.#connection.isClosed()) return;
    const expected = this.#connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
    if (bytes.length > expected) {
      const text = `the reply has ${bytes.length} bytes; the broker takes ${expected}`;
      const details = { expected, received: bytes.length };
      this.#send(reply, encodeError(new PserverError("TOO_LARGE", text, details)));
      return;
    }
    publishBulk(this.#connection, reply, bytes);
    this.#inFlightBytes += bytes.length;
    this.#unprobedBytes += bytes.length;
    this.#unprobed.push(bytes);
    if (this.#unprobedBytes >= PROBE_BYTES) this.#probe();
  }

  #probe(): void {
    const [bytes, replies] = [this.#unprobedBytes, this.#unprobed];
    this.#unprobedBytes = 0;
    this.#unprobed = [];
    const gone = (): void => {
      this.#inFlightBytes -= bytes;
      this.#drain();
    };
    const taken = (): void => {
      for (const reply of replies) this.#pool.giveBack(reply);
      gone();
    };
    // A connection that is lost has dropped the bytes: they are no longer under way, but who knows
    // whether the socket still looks at them.
    this.#connection.flush().then(taken, gone);
  }

  #make(make: MakeReply): Uint8Array {
    try {
      return make((bytes) => this.#pool.take(bytes));
    } catch (error) {
      return encodeError(ensureError(error));
    }
  }
}
