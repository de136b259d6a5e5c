import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { machineMs, serveAgent } from "../agent.ts";
import { Payloads } from "../payloads.ts";
import { WINDOW_BYTES } from "../window.ts";
import type { Sending, Sent } from "./core-sender.ts";

/** Publishes to a stream, with a window of bytes without a PubAck. */
const commands = {
  async open({ url }: { url: string }): Promise<void> {
    const connection = await connect({
      servers: [url],
      timeout: 10_000,
      name: "bench journal sender",
    });
    client = jetstream(connection, { timeout: 30_000 });
  },

  /** Publishes for so long and waits for every PubAck. */
  async run(args: Sending & { subject: string }): Promise<Sent> {
    const { subject, bytes, sourceBytes, durationMs } = args;
    if (client === undefined) throw new Error("not open");
    const payloads = new Payloads(bytes, sourceBytes);
    const window = Math.max(1, Math.floor(WINDOW_BYTES / bytes));
    const acks = new Set<Promise<unknown>>();
    const startMs = machineMs();
    let messages = 0;
    while (messages === 0 || machineMs() - startMs < durationMs) {
      while (acks.size >= window) await Promise.race(acks);
      const ack = client.publish(subject, payloads.next()).finally(() => acks.delete(ack));
      acks.add(ack);
      messages += 1;
    }
    await Promise.all(acks);
    return { messages, startMs };
  },
};

export type JournalSender = typeof commands;

let client: JetStreamClient | undefined;

serveAgent(commands);
