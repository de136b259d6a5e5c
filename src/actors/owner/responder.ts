import type { NatsConnection } from "@nats-io/transport-node";
import { type Allocate, encodeError, ensureError, PserverError } from "../../protocol/index.ts";
import type { BufferPool } from "../../transport/buffer-pool.ts";
import { publishBulk } from "../../transport/bulk-transport.ts";

/** Bytes of replies on their way to the broker; nats.js itself would buffer without a bound. */
const IN_FLIGHT_BYTES_MAX = 6 * 1024 * 1024;

/** After so many bytes the broker is asked whether it has taken them. */
const PROBE_BYTES = 2 * 1024 * 1024;

/** Replies that may wait their turn; then askers are told BUSY. */
const QUEUE_MAX = 8_192;

/** Makes a reply; what it gives belongs to the responder. Large ones are made in `allocate`. */
export type MakeReply = (allocate: Allocate) => Uint8Array;

/** One reply to make when its turn comes. */
interface Task {
  readonly reply: string;
  readonly make: MakeReply;
}

/**
 * Sends the replies of a worker in order, a bounded number of bytes at a time. A reply is made only
 * when it can be sent, so a waiting one costs no memory and carries the newest values.
 */
export class Responder {
  readonly #connection: NatsConnection;
  #queue: Task[] = [];
  #head = 0;
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
  respond(reply: string, make: MakeReply): boolean {
    if (this.#queue.length - this.#head >= QUEUE_MAX) {
      const error = new PserverError("BUSY", `more than ${QUEUE_MAX} replies wait`, {
        expected: QUEUE_MAX,
      });
      this.#send(reply, encodeError(error));
      return false;
    }
    this.#queue.push({ reply, make });
    this.#drain();
    return true;
  }

  #drain(): void {
    while (this.#head < this.#queue.length && this.#inFlightBytes < IN_FLIGHT_BYTES_MAX) {
      const task = this.#queue[this.#head++];
      if (task !== undefined) this.#send(task.reply, this.#make(task.make));
    }
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
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
