/**
 * Entry point of a host's worker thread: it follows the messages of the main thread until told to close.
 * An error while it starts ends the thread, and with it the host.
 */
import { parentPort, workerData } from "node:worker_threads";
import { PserverError } from "../../protocol/index.ts";
import { openShardWorker } from "./shard-worker.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./worker-pool.ts";

const port = parentPort;
if (port === null) throw new PserverError("INTERNAL", "host-worker.ts must run as a worker thread");
const send = (message: FromWorker): void => port.postMessage(message);

const worker = await openShardWorker(workerData as WorkerSetup, send);
port.on("message", (message: ToWorker) => {
  if (message.type === "own") worker.own(message.shard);
  else if (message.type === "disown") worker.disown(message.shard);
  else if (message.type === "save") void worker.save(message.shard);
  else void worker.close().then(() => port.close());
});
send({ type: "ready" });
