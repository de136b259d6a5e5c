import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import { readable } from "./read-record.ts";

/** Subjects remembered: the blocks of a shard times its trainers, of all but large jobs. */
const KNOWN_MAX = 2_048;

/** Reads the subjects of a journal, where the same few come again and again: each is read once. */
export class LogSubjects {
  readonly #subjects: JobSubjects;
  readonly #known: Map<string, LogSubject> = new Map();

  constructor(subjects: JobSubjects) {
    this.#subjects = subjects;
  }

  /** What a subject says, undefined if it is none of a journal of the job. */
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
