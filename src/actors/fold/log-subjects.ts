import type { JobSubjects, LogSubject } from "../../protocol/subjects.ts";
import { subjectCrcOf } from "./journal-checksum.ts";
import { readable } from "./read-record.ts";

/** Number of cached subjects: enough for each block of a shard and each trainer, except in large jobs. */
const KNOWN_MAX = 2_048;

/** A subject of a journal. */
export interface ReadSubject {
  /** Its parts; undefined if it is not one of the job's journals. */
  readonly parsed: LogSubject | undefined;
  /** Checksum of its characters. */
  readonly crc: number;
}

/** Parser of journal subjects with a cache, because the same few subjects repeat. */
export class LogSubjects {
  readonly #subjects: JobSubjects;
  readonly #known: Map<string, ReadSubject> = new Map();

  constructor(subjects: JobSubjects) {
    this.#subjects = subjects;
  }

  /** Parses a subject. */
  read(subject: string): ReadSubject {
    const known = this.#known.get(subject);
    if (known !== undefined) return known;
    const parsed = readable(() => this.#subjects.parseLog(subject));
    const read = { parsed, crc: subjectCrcOf(subject) };
    if (parsed === undefined) return read;
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    this.#known.set(subject, read);
    return read;
  }
}
