/** Entry point of a replay thread: it opens the history by itself and works until it is terminated. */
import { parentPort, workerData } from "node:worker_threads";
import { ensureError, PserverError } from "../../protocol/index.ts";
import { openHistory } from "../open-history.ts";
import type { ReplayedShard } from "./replayed-shard.ts";
import { LocalReplayer } from "./replayer.ts";
import type { FromThread, TaskResults, ThreadSetup, ToThread } from "./thread-messages.ts";

const port = parentPort;
if (port === null) throw new PserverError("INTERNAL", "thread.ts must run as a worker thread");

const send = (message: FromThread, transfer: ArrayBuffer[] = []): void =>
  port.postMessage(message, transfer);

const { place } = workerData as ThreadSetup;
const source = await openHistory(place);
const replayer = new LocalReplayer(source, new AbortController().signal);
const replays = new Map<number, ReplayedShard>();

async function work({ id, task }: ToThread): Promise<TaskResults[keyof TaskResults]> {
  if (task.kind === "replay") {
    const replayed = await replayer.replay(task.shard, task.to, (_, doneRecords, totalRecords) =>
      send({ kind: "progress", id, doneRecords, totalRecords }),
    );
    replays.set(id, replayed);
    return replayed.blocks;
  }
  const replayed = replays.get(task.replay);
  if (replayed === undefined) throw new PserverError("INTERNAL", `no replay ${task.replay}`);
  if (task.kind === "digest") return await replayed.digest();
  return await replayed.slot(task.parameter, task.index, task.slot);
}

port.on("message", (message: ToThread) => {
  const { id } = message;
  work(message).then(
    (result) => {
      const bytes = result instanceof Uint8Array ? [result.buffer] : [];
      send({ kind: "done", id, result }, bytes);
    },
    (error: unknown) => send({ kind: "failed", id, error: ensureError(error).toWire() }),
  );
});
send({ kind: "ready" });
