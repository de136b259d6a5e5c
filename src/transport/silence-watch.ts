/** Time between two looks at a connection. */
const LOOK_MS = 1_500;

/**
 * How long nothing may come while a PING is not answered: more while bytes that were sent before may still be on their
 * way, so much as a link of 256 KiB a second needs for them, up to a limit.
 */
const SILENCE_MS = 3_000;
const BYTES_PER_MS = 256;
const SILENCE_MS_MAX = 20_000;

/** Bytes that a connection has received and sent since it was made. */
export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** What a {@link SilenceWatch} needs of a connection that is made again when it is lost. */
export interface WatchedConnection {
  /** The traffic of the present connection; undefined while there is none. */
  readonly traffic: () => Traffic | undefined;
  /** Sends a PING; settles when it is answered, or the connection is lost. */
  readonly ping: () => Promise<unknown>;
  /** Ends the present connection, so that another one is made. */
  readonly end: () => void;
}

/**
 * Ends a connection whose broker hangs or cannot be reached, though nothing has closed it. Whatever arrives shows that
 * the broker is there, were it a part of a message: nats.js itself counts only answers to PINGs, which a slow link
 * brings behind megabytes.
 */
export class SilenceWatch {
  readonly #connection: WatchedConnection;
  readonly #timer: NodeJS.Timeout;
  /** The PING without an answer; undefined if there is none. */
  #ping: object | undefined;
  /** Bytes sent before the last PING that was answered. */
  #confirmedBytes = 0;
  #receivedBytes = 0;
  #heardAtMs = 0;
  #lookedAtMs = performance.now();

  /** Watches until {@link stop}. */
  constructor(connection: WatchedConnection) {
    this.#connection = connection;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Stops to watch. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    // A time in which this process was paused or busy is no silence: what has come meanwhile is yet to be read.
    const isLate = nowMs - this.#lookedAtMs > 2 * LOOK_MS;
    this.#lookedAtMs = nowMs;
    const traffic = this.#connection.traffic();
    if (traffic === undefined) {
      this.#ping = undefined;
      this.#confirmedBytes = 0;
      return;
    }
    const { receivedBytes, sentBytes } = traffic;
    if (isLate || receivedBytes !== this.#receivedBytes) this.#heardAtMs = nowMs;
    this.#receivedBytes = receivedBytes;
    if (this.#ping === undefined) {
      this.#send(sentBytes, nowMs);
    } else if (nowMs - this.#heardAtMs >= patienceMs(sentBytes - this.#confirmedBytes)) {
      this.#ping = undefined;
      this.#confirmedBytes = 0;
      this.#connection.end();
    }
  }

  #send(sentBytes: number, nowMs: number): void {
    const ping = {};
    this.#ping = ping;
    this.#heardAtMs = nowMs;
    const answered = (): void => {
      if (this.#ping !== ping) return;
      this.#ping = undefined;
      this.#confirmedBytes = sentBytes;
    };
    const lost = (): void => {
      if (this.#ping === ping) this.#ping = undefined;
    };
    this.#connection.ping().then(answered, lost);
  }
}

/** Returns how long nothing may come while so many bytes may be on their way to the broker. */
function patienceMs(bytes: number): number {
  return Math.min(SILENCE_MS + Math.max(0, bytes) / BYTES_PER_MS, SILENCE_MS_MAX);
}
