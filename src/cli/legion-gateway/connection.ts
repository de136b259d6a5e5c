import type { Socket } from "node:net";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { errnoCode } from "../../system/file-errors.ts";
import type { Timeouts } from "./byte-source.ts";
import type { RequestHandler } from "./request-handler.ts";
import { parseRequest } from "./requests.ts";
import { LegionWire } from "./wire.ts";

/** How long a peer may take to read the final error message. */
const ERROR_READ_MS = 5_000;

/** Time without a byte after which TCP checks that the peer still exists. */
const KEEP_ALIVE_MS = 60_000;

/** Serves one trainer that speaks Legion's protocol until it leaves, or a request fails. */
export class LegionConnection {
  readonly #socket: Socket;
  readonly #wire: LegionWire;
  readonly #handler: RequestHandler;
  #isServing = false;
  #isClosing = false;

  private constructor(socket: Socket, wire: LegionWire, handler: RequestHandler) {
    this.#socket = socket;
    this.#wire = wire;
    this.#handler = handler;
  }

  /** The connection of a socket that has just been accepted. */
  static accept(socket: Socket, timeouts: Timeouts, handler: RequestHandler): LegionConnection {
    // The read or write under way reports the socket's errors.
    socket.on("error", () => undefined);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return new LegionConnection(socket, LegionWire.over(socket, timeouts), handler);
  }

  /** Serves requests in order; returns why it ended, undefined if the trainer has left. */
  async run(): Promise<PserverError | undefined> {
    try {
      while (!this.#isClosing && (await this.#hasMore())) {
        this.#isServing = true;
        const request = parseRequest(await this.#wire.readJson("query"));
        await this.#handler.handle(request, this.#wire);
        this.#isServing = false;
      }
      return undefined;
    } catch (thrown) {
      const error = asConnectionError(thrown);
      await this.#sendError(error);
      return error;
    } finally {
      this.#socket.destroy();
    }
  }

  /** Ends it once the request that it serves, if any, is done. */
  close(): void {
    this.#isClosing = true;
    if (!this.#isServing) this.#socket.destroy();
  }

  /** Ends it at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  async #hasMore(): Promise<boolean> {
    try {
      return await this.#wire.hasMore();
    } catch (error) {
      // Closed by this process, or by a peer between two requests.
      if (this.#isClosing || errnoCode(error) === "ECONNRESET") return false;
      throw error;
    }
  }

  /**
   * Sends the error in a JSON frame, in place of the next reply. What the peer still sends is read
   * meanwhile, because closing a socket with unread bytes would discard the error frame.
   */
  async #sendError(error: PserverError): Promise<void> {
    const timer = setTimeout(() => this.#socket.destroy(), ERROR_READ_MS);
    try {
      const { code, message } = error;
      await this.#wire.sendJson({ error: { code, message } });
      await this.#wire.finish();
    } catch {
      // The peer has gone or does not read.
    } finally {
      clearTimeout(timer);
    }
  }
}

function asConnectionError(thrown: unknown): PserverError {
  const errno = errnoCode(thrown);
  if (thrown instanceof PserverError || errno === undefined) return ensureError(thrown);
  return new PserverError("IO", `connection: ${errno}`, { errno }, { cause: thrown });
}
