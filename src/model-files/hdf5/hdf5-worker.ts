/** Entry point of a thread that reads or writes one HDF5 file, as the main thread asks. */
import { parentPort, workerData } from "node:worker_threads";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { Hdf5Reader } from "./file-reader.ts";
import { Hdf5Writer } from "./file-writer.ts";
import { Hdf5File } from "./library.ts";
import type { FromHdf5, Hdf5Setup, ToHdf5 } from "./thread-messages.ts";

const port = parentPort;
if (port === null) throw new PserverError("INTERNAL", "hdf5-worker.ts must run as a worker thread");
const { file: path, descriptor, mode } = workerData as Hdf5Setup;
// Awaited with the first message, which is answered with its error.
const opened = Hdf5File.open(path, descriptor, mode).then((file) => ({
  writer: new Hdf5Writer(file),
  reader: new Hdf5Reader(file, path),
}));
opened.catch(() => undefined);
let turn: Promise<void> = Promise.resolve();

port.on("message", (message: ToHdf5) => {
  turn = turn.then(async () => {
    const answer = await answerTo(message);
    port.postMessage(answer, answer.type === "data" ? [answer.data.buffer as ArrayBuffer] : []);
  });
});

async function answerTo(message: ToHdf5): Promise<FromHdf5> {
  try {
    const { writer, reader } = await opened;
    switch (message.type) {
      case "list":
        return { type: "contents", contents: reader.list() };
      case "read":
        return { type: "data", data: reader.read(message) };
      case "create":
        writer.create(message.dataset);
        return { type: "done" };
      case "write":
        writer.write(message, message.data);
        return { type: "done" };
      case "finish":
        writer.finish(message.metadata);
        return { type: "done" };
    }
  } catch (error) {
    return { type: "error", error: ensureError(error).toWire() };
  }
}
