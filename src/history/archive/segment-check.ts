import { badArchive } from "../container/bad-archive.ts";
import type { PlacedFrame } from "../container/container-reader.ts";
import type { Frame, RecordFrame, TapeFrame } from "../container/frames.ts";
import { requireJob } from "./archive-facts.ts";
import type { SegmentFile } from "./archive-layout.ts";

/** What segments are made of: records of a journal, or messages of a tape. */
export type SegmentFrame = RecordFrame | TapeFrame;

/** What tells the two apart. */
export type SegmentKind = SegmentFrame["kind"];

/** The frames of one kind of segment. */
export type FrameOf<Kind extends SegmentKind> = Extract<SegmentFrame, { readonly kind: Kind }>;

/** Where a frame of a segment belongs. */
export interface SegmentPlace {
  readonly shard: number;
  /** 0 in a tape, which has no generations. */
  readonly generation: number;
  /** Of a message of a tape, its number in the archive. */
  readonly seq: number;
}

/** Where a frame of a segment belongs. */
export function placeOf(frame: SegmentFrame): SegmentPlace {
  const { shard } = frame;
  return frame.kind === "tape"
    ? { shard, generation: TAPE_GENERATION, seq: frame.number }
    : { shard, generation: frame.generation, seq: frame.seq };
}

/** The generation in the names of a tape's segments. */
const TAPE_GENERATION = 0;

/** Checks that the frames of a segment are what its name says, one after the other. */
export class SegmentCheck<Kind extends SegmentKind> {
  readonly #kind: Kind;
  readonly #segment: SegmentFile;
  readonly #shard: number;
  readonly #archive: string;
  #nextSeq: number;
  #isFirst = true;

  constructor(kind: Kind, segment: SegmentFile, shard: number, archive: string) {
    this.#kind = kind;
    this.#segment = segment;
    this.#shard = shard;
    this.#archive = archive;
    this.#nextSeq = segment.firstSeq;
  }

  /** Sequence of the last frame. */
  get lastSeq(): number {
    return this.#nextSeq - 1;
  }

  /** What the segment holds, of frames that were read. @throws BAD_ARCHIVE. */
  contents(batch: readonly PlacedFrame[]): FrameOf<Kind>[] {
    const contents: FrameOf<Kind>[] = [];
    for (const placed of batch) {
      if (this.#isFirst) this.#checkFirst(placed);
      else if (placed.frame.kind !== "end") contents.push(this.#checkNext(placed));
      this.#isFirst = false;
    }
    return contents;
  }

  /** @throws BAD_ARCHIVE unless the last frame is the one that the name says. */
  checkLast(): void {
    const { path, lastSeq } = this.#segment;
    if (lastSeq === undefined || lastSeq === this.lastSeq) return;
    const what = this.#kind === "tape" ? "messages" : "records";
    throw badArchive(
      path,
      0,
      `expected ${what} up to ${lastSeq}; it has them up to ${this.lastSeq}`,
    );
  }

  #checkFirst({ frame, offset }: PlacedFrame): void {
    const { path } = this.#segment;
    const { archive } = requireJob(path, offset, frame);
    if (archive === this.#archive) return;
    throw badArchive(path, offset, "the file is of another archive");
  }

  #checkNext({ frame, offset }: PlacedFrame): FrameOf<Kind> {
    const { path, generation } = this.#segment;
    const kind = this.#kind;
    const expected = describePlace(kind, { shard: this.#shard, generation, seq: this.#nextSeq });
    if (!isOfKind(frame, kind)) {
      throw badArchive(path, offset, `expected ${expected}; received a ${frame.kind}`);
    }
    const received = describePlace(kind, placeOf(frame));
    if (received !== expected) {
      throw badArchive(path, offset, `expected ${expected}; received ${received}`);
    }
    this.#nextSeq++;
    return frame;
  }
}

function isOfKind<Kind extends SegmentKind>(frame: Frame, kind: Kind): frame is FrameOf<Kind> {
  return frame.kind === kind;
}

function describePlace(kind: SegmentKind, { shard, generation, seq }: SegmentPlace): string {
  return kind === "tape"
    ? `message ${seq} of the tape of shard ${shard}`
    : `record ${seq} of shard ${shard}, generation ${generation}`;
}
