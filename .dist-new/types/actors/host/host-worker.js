/**
 * Entry point of a host's worker thread, which works until the main thread ends it. An error while it starts ends the
 * thread, and with it the host.
 */
import { workerData } from "node:worker_threads";
import { serveThread } from "../worker-thread.js";
import { openShardWorker } from "./shard-worker.js";
await serveThread(async (emit) => {
    const worker = await openShardWorker(workerData, emit);
    return {
        own: (shard) => worker.own(shard),
        disown: (shard) => worker.disown(shard),
        save: (shard, progress) => worker.save(shard, progress),
        close: () => worker.close(),
    };
});
//# sourceMappingURL=host-worker.js.map