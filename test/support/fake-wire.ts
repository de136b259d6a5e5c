import type { InboxMessage, Wire, WireListener } from "../../src/client/wire/wire.ts";
import type { PserverError } from "../../src/protocol/errors.ts";

/** One message handed to the connection. */
export interface Published {
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly reply: string;
}

/**
 * A connection that delivers nothing by itself: the test is broker and host. It answers PINGs at once, unless they are
 * to wait. What a client has two connections for goes over it as well, with another inbox.
 */
export class FakeWire implements Wire {
  readonly inbox: string = "_INBOX_j.t.life";
  connected = true;
  receivedBytes = 0;
  leftBytes = 0;
  /** Whether PINGs are not answered until {@link answerPings}. */
  holdsPings = false;
  readonly #pings: (() => void)[] = [];
  readonly payloadBytesMax = 8 * 1024 * 1024;
  readonly published: Published[] = [];
  readonly #callbacks: Map<string, (message: InboxMessage) => void> = new Map();
  readonly #listeners: WireListener[] = [];

  publish(subject: string, bytes: Uint8Array, reply: string): void {
    this.published.push({ subject, bytes, reply });
  }

  flush(): Promise<void> {
    if (!this.holdsPings) return Promise.resolve();
    return new Promise((resolve) => this.#pings.push(resolve));
  }

  /** Answers the PINGs that wait. */
  answerPings(): void {
    for (const answer of this.#pings.splice(0)) answer();
  }

  /** The other connection of the client. */
  get control(): Wire {
    const inbox = "_INBOX_j.t.control";
    const receive: Wire["receive"] = (name, callback) => this.#receiveAt(inbox, name, callback);
    return new Proxy<Wire>(this, {
      get: (wire, key) => {
        if (key === "inbox") return inbox;
        if (key === "receive") return receive;
        const value: unknown = Reflect.get(wire, key, wire);
        return typeof value === "function" ? value.bind(wire) : value;
      },
    });
  }

  receive(name: string, callback: (message: InboxMessage) => void): void {
    this.#receiveAt(this.inbox, name, callback);
  }

  #receiveAt(inbox: string, name: string, callback: (message: InboxMessage) => void): void {
    this.#callbacks.set(`${inbox}.${name.replace(".*", "")}`, callback);
  }

  listen(listener: WireListener): void {
    this.#listeners.push(listener);
  }

  /** Delivers a message to a subject below the inbox. */
  deliver(subject: string, data: Uint8Array, noResponders = false): void {
    const [prefix, trainer, life, name = "", token = name] = subject.split(".");
    this.#callbacks.get([prefix, trainer, life, name].join("."))?.({ token, noResponders, data });
  }

  /** Says that nobody listens to what was published. */
  noResponders(published: Published): void {
    this.deliver(published.reply, new Uint8Array(0), true);
  }

  disconnect(): void {
    this.connected = false;
    for (const listener of this.#listeners) listener.disconnected?.();
  }

  reconnect(): void {
    this.connected = true;
    for (const listener of this.#listeners) listener.reconnected?.();
  }

  deny(subject: string, error: PserverError): void {
    for (const listener of this.#listeners) listener.denied?.(subject, error);
  }
}
