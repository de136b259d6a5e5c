import {
  checkNote,
  encodeNote,
  NOTE_BYTES_MAX,
  NOTE_SHARD,
  type NoteEntries,
} from "../../protocol/messages/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Ack } from "../push/updates.ts";
import type { UpdateSender } from "../shell/update-sender.ts";
import type { Deadline } from "./deadline.ts";

/** Dependencies of Notes. */
export interface NotesDeps {
  readonly sender: UpdateSender;
  readonly subjects: JobSubjects;
  readonly trainer: string;
}

/** Writes a trainer's remarks into the journal. */
export class Notes {
  readonly #deps: NotesDeps;

  constructor(deps: NotesDeps) {
    this.#deps = deps;
  }

  /** Sends a note; see `Client.note`. The entries are copied. */
  async send(entries: NoteEntries, deadline: Deadline, ack?: Ack): Promise<void> {
    const { sender, subjects, trainer } = this.#deps;
    const note = checkNote({ ...entries });
    const source = {
      subject: subjects.note(NOTE_SHARD, trainer),
      shard: NOTE_SHARD,
      topic: { kind: "note" },
      blocks: 1,
      dataBytes: NOTE_BYTES_MAX,
      namesVersion: false,
      draft: (head) => encodeNote({ verb: "note", ...head, note }),
    } as const satisfies Parameters<UpdateSender["send"]>[0][number];
    await sender.send([source], { deadline, stored: ack === "stored" });
  }
}
