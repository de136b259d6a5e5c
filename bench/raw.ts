import type { Bed, Storage } from "./bed.ts";
import { type NamedModel, parameterBytes } from "./models.ts";
import type { CoreReceiver } from "./programs/core-receiver.ts";
import type { CoreSender } from "./programs/core-sender.ts";
import type { JournalReceiver } from "./programs/journal-receiver.ts";
import type { JournalSender } from "./programs/journal-sender.ts";
import type { Measurement } from "./rounds.ts";

/** The raw measurements of one broker: what its clients do without a parameter server. */
export interface Raw {
  /**
   * Measures one process that publishes messages of the model's blocks, and another that receives
   * them.
   */
  core(model: NamedModel): Measurement;
  /**
   * Measures one process that publishes to a stream, and another that reads it at the same time.
   */
  journal(model: NamedModel): Measurement;
}

const STREAM = "BENCH";

/** Names a raw measurement. */
export function rawName(storage: Storage, model: NamedModel, kind: "core" | "journal"): string {
  return `${storage}, ${model.name}, raw ${kind === "core" ? "core" : "JetStream"}`;
}

/** Starts the two processes of each kind. */
export async function startRaw(bed: Bed, storage: Storage): Promise<Raw> {
  const { url, pid } = bed.broker;
  const broker = { role: "broker", pid };
  const core = {
    sender: bed.start<CoreSender>("core-sender"),
    receiver: bed.start<CoreReceiver>("core-receiver"),
  };
  const journal = {
    sender: bed.start<JournalSender>("journal-sender"),
    receiver: bed.start<JournalReceiver>("journal-receiver"),
  };
  await Promise.all([
    core.sender.call("open", { url, subject: "bench.core" }),
    core.receiver.call("open", { url, subject: "bench.core" }),
    journal.sender.call("open", { url }),
    journal.receiver.call("open", { url }),
  ]);
  return {
    core: (model) => ({
      name: rawName(storage, model, "core"),
      processes: [
        broker,
        { role: "sender", pid: core.sender.pid },
        { role: "receiver", pid: core.receiver.pid },
      ],
      run: async (durationMs) => {
        const bytes = model.blockBytes;
        // A host sends every parameter of the model from its own place.
        const sourceBytes = model.parameters * parameterBytes(model);
        const sending = { bytes, sourceBytes, durationMs };
        const { messages, startMs } = await core.sender.call("run", sending);
        const endMs = await core.receiver.call("last", { messages });
        return { bytes: messages * bytes, seconds: (endMs - startMs) / 1e3 };
      },
    }),
    journal: (model) => ({
      name: rawName(storage, model, "journal"),
      processes: [
        broker,
        { role: "sender", pid: journal.sender.pid },
        { role: "receiver", pid: journal.receiver.pid },
      ],
      run: async (durationMs) => {
        const subject = "bench.journal";
        const bytes = model.blockBytes;
        await journal.receiver.call("read", { stream: STREAM, subject, storage, bytes });
        const { messages, startMs } = await journal.sender.call("run", {
          subject,
          bytes,
          // A trainer of these measurements sends one gradient for all parameters.
          sourceBytes: parameterBytes(model),
          durationMs,
        });
        const endMs = await journal.receiver.call("last", { messages, stream: STREAM });
        return { bytes: messages * bytes, seconds: (endMs - startMs) / 1e3 };
      },
    }),
  };
}
