/** Entry point of a replay thread: it opens the history by itself and works until it is terminated. */
import { parentPort, workerData } from "node:worker_threads";
import { ensureError, PserverError } from "../../protocol/index.ts";
import { openHistory } from "../open-journal.ts";
import type { ReplayedShard } from "./replayed-model.ts";
import { LocalReplayer, type OnShardProgress } from "./replayer.ts";
import type {
  FromThread,
  KeptShard,
  TaskResults,
  ThreadSetup,
  ThreadTask,
  ToThread,
} from "./thread-pool.ts";

const port = parentPort;
if (port === null)
  throw new PserverError("INTERNAL", "replay-worker.ts must run as a worker thread");

const send = (message: FromThread, transfer: ArrayBuffer[] = []): void =>
  port.postMessage(message, transfer);

const { place } = workerData as ThreadSetup;
const source = await openHistory(place);
const replayer = new LocalReplayer(source, new AbortController().signal);
const replays = new Map<number, ReplayedShard>();

async function work({ id, task }: ToThread): Promise<TaskResults[keyof TaskResults]> {
  const onProgress: OnShardProgress = (_, doneRecords, totalRecords) =>
    send({ kind: "progress", id, doneRecords, totalRecords });
  if (task.kind === "replay")
    return keep(id, await replayer.replay(task.shard, task.to, onProgress));
  if (task.kind === "verify") {
    const { verification, replayed } = await replayer.verify(task.shard, task.from, onProgress);
    return { verification, kept: replayed && keep(id, replayed) };
  }
  if (task.kind === "otherwise") {
    const { shard, to, otherwise } = task;
    const found = await replayer.foldOtherwise(shard, to, otherwise, onProgress);
    return { kept: keep(id, found.replayed), counts: found.counts };
  }
  return await workOn(task);
}

async function workOn(
  task: Exclude<ThreadTask, { kind: "replay" | "verify" | "otherwise" }>,
): Promise<TaskResults[keyof TaskResults]> {
  const replayed = replays.get(task.replay);
  if (replayed === undefined) throw new PserverError("INTERNAL", `no replay ${task.replay}`);
  switch (task.kind) {
    case "advance":
      await replayed.advance(task.to);
      return keep(task.replay, replayed);
    case "free":
      replays.delete(task.replay);
      return undefined;
    case "digest":
      return await replayed.digest();
    case "state-digest":
      return await replayed.stateDigest();
    case "block-digest":
      return await replayed.blockDigest(task.parameter, task.index);
    case "slot":
      return await replayed.slot(task.parameter, task.index, task.slot);
  }
}

function keep(id: number, replayed: ReplayedShard): KeptShard {
  replays.set(id, replayed);
  const { position, blocks } = replayed;
  return { position, blocks };
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
