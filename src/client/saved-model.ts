import { encodeMessage } from "../protocol/codec.ts";
import { PserverError } from "../protocol/errors.ts";
import { integerField, textField } from "../protocol/fields.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import type { Deadline } from "./deadline.ts";
import type { Requests } from "./requests.ts";

/** A model file that a host has written. */
export interface SavedModel {
  /** Path of the file, as the host that wrote it sees it. */
  readonly file: string;
  readonly bytes: number;
  readonly format: string;
}

/** Has a host write the model to a file; see `Client.saveModel`. */
export function saveModel(
  {
    requests,
    subjects,
    trainer,
  }: { readonly requests: Requests; readonly subjects: JobSubjects; readonly trainer: string },
  path: string,
  deadline: Deadline,
): Promise<SavedModel> {
  return requests.ask({
    subject: subjects.control(trainer, "save"),
    body: () => encodeMessage({ path }),
    read: ({ fields }) => ({
      file: textField(fields, "file", 4096),
      bytes: integerField(fields, "bytes"),
      format: textField(fields, "format"),
    }),
    deadline,
    nobody: () => new PserverError("NO_HOST", `no host of job ${subjects.job} can save`),
    // Saving takes its time: asking again would only begin it again.
    repeat: false,
  });
}
