import { connect, type NatsConnection } from "@nats-io/transport-node";
import { machineMs, serveAgent } from "../agent.ts";
import { WINDOW_BYTES } from "../window.ts";

/** Receives from core NATS and reports to the sender, four times a window, how much it has. */
const commands = {
  async open({ url, subject }: { url: string; subject: string }): Promise<void> {
    connection = await connect({ servers: [url], timeout: 10_000, name: "bench core receiver" });
    connection.subscribe(subject, {
      callback: (_error, message) => {
        received += 1;
        lastMs = machineMs();
        const every = Math.max(1, Math.floor(WINDOW_BYTES / 4 / message.data.length));
        if (received % every === 0) connection?.publish(`${subject}.received`, String(received));
        if (received === expected) onExpected();
      },
    });
    await connection.flush();
  },

  /** Waits until so many messages have come; returns when the last did, and sets the count to 0. */
  async last({ messages }: { messages: number }): Promise<number> {
    expected = messages;
    if (received < expected) await new Promise<void>((resolve) => (onExpected = resolve));
    received = 0;
    expected = 0;
    return lastMs;
  },
};

export type CoreReceiver = typeof commands;

let connection: NatsConnection | undefined;
let received = 0;
let expected = 0;
let lastMs = 0;
let onExpected: () => void = () => {};

serveAgent(commands);
