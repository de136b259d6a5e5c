import type { InboxMessage, Wire, WireListener } from "../../src/client/wire/wire.ts";
import type { PserverError } from "../../src/protocol/errors.ts";

/** One message handed to the connection. */
export interface Published {
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly reply: string;
}

/** A connection that delivers nothing by itself: the test is broker and host. */
export class FakeWire implements Wire {
  readonly inbox = "_INBOX_j.t.life";
  connected = true;
  readonly payloadBytesMax = 8 * 1024 * 1024;
  readonly published: Published[] = [];
  readonly #callbacks: Map<string, (message: InboxMessage) => void> = new Map();
  readonly #listeners: WireListener[] = [];

  publish(subject: string, bytes: Uint8Array, reply: string): void {
    this.published.push({ subject, bytes, reply });
  }

  receive(name: string, callback: (message: InboxMessage) => void): void {
    this.#callbacks.set(name.replace(".*", ""), callback);
  }

  listen(listener: WireListener): void {
    this.#listeners.push(listener);
  }

  /** Delivers a message to a subject below the inbox. */
  deliver(subject: string, data: Uint8Array, noResponders = false): void {
    const [name = "", token = name] = subject.slice(this.inbox.length + 1).split(".");
    this.#callbacks.get(name)?.({ token, noResponders, data });
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
