import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import { readable } from "./read-record.ts";

/** Number of cached subjects: enough for each block of a shard and each trainer, except in large jobs. */
const KNOWN_MAX = 2_048;

/** Parser of journal subjects with a cache, because the same few subjects repeat. */
export class LogSubjects {
  readonly #subjects: JobSubjects;
  readonly #known: Map<string, LogSubject> = new Map();

  constructor(subjects: JobSubjects) {
    this.#subjects = subjects;
  }

  /** The parts of a subject; undefined if it is not one of the job's journals. */
  parse(subject: string): LogSubject | undefined {
    const known = this.#known.get(subject);
    if (known !== undefined) return known;
    const parsed = readable(() => this.#subjects.parseLog(subject));
    if (parsed === undefined) return undefined;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(subject, parsed);
    return parsed;
  }
}
