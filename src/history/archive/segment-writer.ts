import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { FILE_MODES, makeDirectories, syncDirectory } from "../../model-files/atomic-write.ts";
import { io } from "../../system/file-errors.ts";
import type { ContainerVersion } from "../container/container-format.ts";
import { ContainerWriter } from "../container/container-writer.ts";
import type { JournalSpan } from "../source.ts";
import { type ArchiveFacts, jobFrame } from "./archive-facts.ts";
import { segmentPath } from "./archive-layout.ts";
import { joinSpans } from "./join-spans.ts";
import { placeOf, type SegmentFrame } from "./segment-check.ts";

/** Dependencies of {@link SegmentWriter}. */
export interface SegmentWriterDeps {
  /** Directory of the segments, made if it is not there. */
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Version of the format that the frames need. */
  readonly version: ContainerVersion;
  /** Bytes from which on a segment is completed. */
  readonly segmentBytes: number;
}

/** The segment that is being written. */
interface OpenSegment {
  readonly path: string;
  readonly handle: FileHandle;
  readonly writer: ContainerWriter;
  readonly generation: number;
  readonly firstSeq: number;
  lastSeq: number;
}

/**
 * Appends the records of a journal, or the messages of a tape, to the segments of one shard. After an error it must be closed; what was synced
 * stays readable.
 */
export class SegmentWriter {
  readonly #deps: SegmentWriterDeps;
  #open: OpenSegment | undefined;
  #failed = false;
  #spans: JournalSpan[] = [];

  constructor(deps: SegmentWriterDeps) {
    this.#deps = deps;
  }

  /** Places of what was appended. */
  get spans(): readonly JournalSpan[] {
    return this.#spans;
  }

  /**
   * Appends frames of one generation, which follow each other. Where they do not follow those before, a new
   * segment begins.
   * @throws DISK_FULL, IO.
   */
  async append(frames: readonly SegmentFrame[]): Promise<void> {
    await this.#orFail(async () => {
      for (const frame of frames) {
        const { generation, seq } = placeOf(frame);
        const segment = await this.#segmentFor(generation, seq);
        await segment.writer.append(frame);
        segment.lastSeq = seq;
      }
    });
    const [first, last] = [frames[0], frames.at(-1)];
    if (first === undefined || last === undefined) return;
    const [{ generation, seq: firstSeq }, { seq: lastSeq }] = [placeOf(first), placeOf(last)];
    this.#spans = joinSpans([...this.#spans, { generation, firstSeq, lastSeq }]);
  }

  /** Waits until all is on disk. @throws DISK_FULL, IO. */
  async sync(): Promise<void> {
    await this.#orFail(async () => {
      await this.#open?.writer.sync();
    });
  }

  /** Completes the segment; after an error, only cuts off what was not written whole. */
  async close(): Promise<void> {
    const segment = this.#open;
    this.#open = undefined;
    if (segment === undefined) return;
    const { handle, path, writer, generation, firstSeq, lastSeq } = segment;
    try {
      if (this.#failed) {
        await handle.truncate(writer.writtenBytes).catch(() => undefined);
        return;
      }
      await writer.end();
      await writer.sync();
    } finally {
      await handle.close();
    }
    const { directory } = this.#deps;
    const complete = segmentPath(directory, generation, firstSeq, lastSeq);
    await io("rename", path, rename(path, complete));
    await syncDirectory(directory);
  }

  /** The segment that takes a frame: the present one, or else a new one. */
  async #segmentFor(generation: number, seq: number): Promise<OpenSegment> {
    const present = this.#open;
    if (present !== undefined) {
      const follows = present.generation === generation && present.lastSeq + 1 === seq;
      if (follows && present.writer.bytes < this.#deps.segmentBytes) return present;
      await this.close();
    }
    this.#open = await this.#begin(generation, seq);
    return this.#open;
  }

  async #begin(generation: number, firstSeq: number): Promise<OpenSegment> {
    const { directory, facts, version } = this.#deps;
    await makeDirectories(directory);
    const path = segmentPath(directory, generation, firstSeq);
    const handle = await io("create", path, open(path, "wx", FILE_MODES.model));
    try {
      const writer = ContainerWriter.begin(handle, path, version);
      await writer.append(jobFrame(facts));
      await syncDirectory(directory);
      return { path, handle, writer, generation, firstSeq, lastSeq: firstSeq - 1 };
    } catch (error) {
      await handle.close();
      await rm(path, { force: true });
      throw error;
    }
  }

  async #orFail(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }
}
