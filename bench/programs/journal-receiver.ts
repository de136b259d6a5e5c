import {
  AckPolicy,
  type ConsumerMessages,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  StorageType,
} from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { machineMs, serveAgent } from "../agent.ts";
import { CREDIT_BYTES } from "../window.ts";

/** Reads a stream while it is written, through a pull consumer that needs no acknowledgements. */
const commands = {
  async open({ url }: { url: string }): Promise<void> {
    const connection = await connect({
      servers: [url],
      timeout: 10_000,
      name: "bench journal receiver",
    });
    client = jetstream(connection, { timeout: 30_000 });
    manager = await client.jetstreamManager();
  },

  /**
   * Makes a stream, in place of one before, and starts to read it; `bytes` is the size of the
   * messages to come.
   */
  async read(args: {
    stream: string;
    subject: string;
    storage: "file" | "memory";
    bytes: number;
  }): Promise<void> {
    const { stream, subject, storage, bytes } = args;
    if (client === undefined || manager === undefined) throw new Error("not open");
    await manager.streams.add({
      name: stream,
      subjects: [subject],
      storage: storage === "file" ? StorageType.File : StorageType.Memory,
    });
    await manager.consumers.add(stream, {
      name: "reader",
      ack_policy: AckPolicy.None,
      mem_storage: true,
    });
    const consumer = await client.consumers.get(stream, "reader");
    received = 0;
    expected = 0;
    reading = await consumer.consume({
      max_messages: Math.min(512, Math.max(2, Math.floor(CREDIT_BYTES / bytes))),
      callback: () => {
        received += 1;
        lastMs = machineMs();
        if (received === expected) onExpected();
      },
    });
  },

  /** Waits until so many messages have come; returns when the last did, and deletes the stream. */
  async last({ messages, stream }: { messages: number; stream: string }): Promise<number> {
    expected = messages;
    if (received < expected) await new Promise<void>((resolve) => (onExpected = resolve));
    await reading?.close();
    await manager?.streams.delete(stream);
    return lastMs;
  },
};

export type JournalReceiver = typeof commands;

let client: JetStreamClient | undefined;
let manager: JetStreamManager | undefined;
let reading: ConsumerMessages | undefined;
let received = 0;
let expected = 0;
let lastMs = 0;
let onExpected: () => void = () => {};

serveAgent(commands);
