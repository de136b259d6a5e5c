import { connect, type NatsConnection } from "@nats-io/transport-node";
import { machineMs, serveAgent } from "../agent.ts";
import { Payloads } from "../payloads.ts";
import { WINDOW_BYTES } from "../window.ts";

/** Publishes to core NATS; the receiver's reports keep the bytes in flight within the window. */
const commands = {
  async open({ url, subject }: { url: string; subject: string }): Promise<void> {
    connection = await connect({ servers: [url], timeout: 10_000, name: "bench core sender" });
    connection.subscribe(`${subject}.received`, {
      callback: (_error, message) => {
        const count = Number(message.string());
        // The last report of the previous run may come late, and would open the window too far.
        if (count > messages) return;
        received = count;
        onReceived();
      },
    });
    await connection.flush();
    target = subject;
  },

  /** Sends messages for so long; returns how many, and when the first left. */
  async run({ bytes, sourceBytes, durationMs }: Sending): Promise<Sent> {
    if (connection === undefined) throw new Error("not open");
    const payloads = new Payloads(bytes, sourceBytes);
    const window = Math.max(1, Math.floor(WINDOW_BYTES / bytes));
    received = 0;
    messages = 0;
    const startMs = machineMs();
    while (messages === 0 || machineMs() - startMs < durationMs) {
      while (messages - received >= window) await new Promise<void>((go) => (onReceived = go));
      connection.publish(target, payloads.next());
      messages += 1;
    }
    await connection.flush();
    return { messages, startMs };
  },
};

/** The messages that a sender sends, and for how long. */
export interface Sending {
  /** Bytes of one message. */
  readonly bytes: number;
  /** Bytes of the array that the messages are cut from. */
  readonly sourceBytes: number;
  readonly durationMs: number;
}

/** The result of one run of a sender. */
export interface Sent {
  readonly messages: number;
  readonly startMs: number;
}

export type CoreSender = typeof commands;

let connection: NatsConnection | undefined;
let target = "";
/** Messages of the current run: sent, and known to have been received. */
let messages = 0;
let received = 0;
let onReceived: () => void = () => {};

serveAgent(commands);
