/**
 * Entry point of a host's worker thread, which works until the main thread ends it. An error while it starts ends the
 * thread, and with it the host.
 */
import { workerData } from "node:worker_threads";
import { serveThread } from "../worker-thread.ts";
import { openShardWorker } from "./shard-worker.ts";
import type { WorkerCalls, WorkerEvent, WorkerSetup } from "./worker-pool.ts";

await serveThread<WorkerCalls, WorkerEvent>(async (emit) => {
  const worker = await openShardWorker(workerData as WorkerSetup, emit);
  return {
    named: (receipt) => worker.named(receipt),
    own: (shard) => worker.own(shard),
    disown: (shard) => worker.disown(shard),
    save: (shard, progress) => worker.save(shard, progress),
    close: () => worker.close(),
  };
});
