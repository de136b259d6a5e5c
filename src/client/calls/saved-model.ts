import { randomUUID } from "node:crypto";
import { encodeMessage, type Fields } from "../../protocol/codec.ts";
import { PserverError } from "../../protocol/errors.ts";
import { asMap, integerField, textField } from "../../protocol/fields.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { MORE, type Requests } from "../wire/wire.ts";
import type { CallOptions, Deadline } from "./calls.ts";

/** A model file that a host has written. */
export interface SavedModel {
  /** Path of the file below the model directory of the host that wrote it. */
  readonly file: string;
  readonly bytes: number;
  readonly format: string;
  /** Id of that host; hosts of older versions do not send it. */
  readonly host?: string;
}

/** Options of `Client.saveModel`. If the call ends early, the host stops writing. */
export interface SaveOptions extends CallOptions {
  /** Called about twice a second with the bytes of values written and in total. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

/** Has a host write the model to a file; see `Client.saveModel`. */
export async function saveModel(
  {
    requests,
    subjects,
    trainer,
  }: { readonly requests: Requests; readonly subjects: JobSubjects; readonly trainer: string },
  path: string,
  deadline: Deadline,
  onProgress: SaveOptions["onProgress"],
): Promise<SavedModel> {
  const token = randomUUID();
  const stop = (): void =>
    requests.tell(subjects.control(trainer, "stop"), encodeMessage({ token }));
  const stopListening = deadline.onEnd(stop);
  try {
    return await requests.ask({
      subject: subjects.control(trainer, "save"),
      // Where accounts are joined, the broker gives the host another reply subject, for one reply.
      body: (reply) => encodeMessage({ path, token, progress: reply }),
      read: ({ fields }) => {
        if (fields["progress"] === undefined) return parseSavedModel(fields);
        const progress = asMap(fields["progress"], "progress");
        onProgress?.(integerField(progress, "doneBytes"), integerField(progress, "totalBytes"));
        return MORE;
      },
      deadline,
      nobody: () => new PserverError("NO_HOST", `no host of job ${subjects.job} can save`),
      // Saving may take minutes, and a repeated request would begin it again.
      repeat: false,
    });
  } finally {
    stopListening();
  }
}

function parseSavedModel(fields: Fields): SavedModel {
  return {
    file: textField(fields, "file", 4096),
    bytes: integerField(fields, "bytes"),
    format: textField(fields, "format"),
    ...(fields["host"] === undefined ? {} : { host: textField(fields, "host") }),
  };
}
