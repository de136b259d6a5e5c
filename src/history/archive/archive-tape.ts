import type { TapeFrame } from "../container/frames.ts";
import type { StoredTapeMessage, TapeStart } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { listSegments, type SegmentFile, tapeDirectory } from "./archive-layout.ts";
import { isRenamed, LISTS_MAX } from "./renamed-segment.ts";
import { readFrames } from "./segment.ts";

/** What an archive holds of one shard's tape, also while an archiver adds to it. */
export class ArchiveTape {
  readonly #directory: string;
  readonly #facts: ArchiveFacts;
  readonly #shard: number;

  constructor(archive: string, facts: ArchiveFacts, shard: number) {
    this.#directory = tapeDirectory(archive, shard);
    this.#facts = facts;
    this.#shard = shard;
  }

  /** The messages from `start` on, oldest first. @throws BAD_ARCHIVE, BAD_VERSION, IO; the reason of `signal`. */
  async *read(
    start: TapeStart,
    signal: AbortSignal,
  ): AsyncGenerator<StoredTapeMessage, void, undefined> {
    let reached = 0;
    for (let lists = 1; ; lists++) {
      try {
        const segments = await listSegments(this.#directory);
        for (const segment of await this.#from(start, segments)) {
          if (segment.lastSeq !== undefined && segment.lastSeq <= reached) continue;
          for await (const batch of this.#frames(segment)) {
            signal.throwIfAborted();
            for (const frame of batch) {
              if (frame.number <= reached) continue;
              reached = frame.number;
              if (isAtOrAfter(start, frame)) yield toTapeMessage(frame);
            }
          }
        }
        return;
      } catch (error) {
        if (!isRenamed(error) || lists === LISTS_MAX) throw error;
      }
    }
  }

  /** The segments without those that end before `start`. */
  async #from(start: TapeStart, segments: readonly SegmentFile[]): Promise<readonly SegmentFile[]> {
    if (start.kind === "time" && start.timeMs <= 0) return segments;
    let from = segments.length - 1;
    for (; from > 0; from--) {
      const first = await this.#firstOf(segments[from] as SegmentFile);
      if (first !== undefined && !isAtOrAfter(start, first)) break;
    }
    return segments.slice(Math.max(0, from));
  }

  async #firstOf(segment: SegmentFile): Promise<TapeFrame | undefined> {
    for await (const [first] of this.#frames(segment)) return first;
    return undefined;
  }

  #frames(segment: SegmentFile): AsyncGenerator<readonly TapeFrame[]> {
    return readFrames("tape", segment, this.#shard, this.#facts);
  }
}

/** A message as all sources give it. */
export function toTapeMessage({ seq, timeMs, data }: TapeFrame): StoredTapeMessage {
  return { seq, timeMs, data };
}

function isAtOrAfter(start: TapeStart, { seq, timeMs }: StoredTapeMessage): boolean {
  return start.kind === "time" ? timeMs >= start.timeMs : seq >= start.seq;
}
