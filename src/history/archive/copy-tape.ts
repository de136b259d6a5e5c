import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { TapeFrame } from "../container/frames.ts";
import type { ShardHistory, StoredTapeMessage } from "../source.ts";
import type { ArchiveFacts } from "./archive-facts.ts";
import { listSegments, tapeDirectory } from "./archive-layout.ts";
import { toTapeMessage } from "./archive-tape.ts";
import { readTail } from "./segment.ts";
import type { SegmentWriter } from "./segment-writer.ts";
import { readTapeAfter } from "./tape-after.ts";

/** Bytes of messages that are held in memory before they are written. */
const BATCH_BYTES = 1024 ** 2;

/** Dependencies of {@link TapeCopier}. */
export interface TapeCopierDeps {
  readonly source: Pick<ShardHistory, "shard" | "readTape">;
  readonly writer: Pick<SegmentWriter, "append" | "sync">;
  readonly directory: string;
  readonly facts: ArchiveFacts;
  /** Called for a segment that is damaged: what may be behind the damage is copied again. */
  readonly onDamaged: (error: PserverError) => void;
}

/** Copies the tape of one shard into an archive, from its beginning on: it is never trimmed. */
export class TapeCopier {
  readonly #deps: TapeCopierDeps;
  #last: StoredTapeMessage | undefined;
  #messages = 0;
  #bytes = 0;

  private constructor(deps: TapeCopierDeps) {
    this.#deps = deps;
  }

  /**
   * Goes on after the last message in the archive, whose segments are all complete.
   * @throws BAD_VERSION, IO.
   */
  static async open(deps: TapeCopierDeps): Promise<TapeCopier> {
    const copier = new TapeCopier(deps);
    const { directory, facts, source, onDamaged } = deps;
    const segments = await listSegments(tapeDirectory(directory, source.shard));
    copier.#messages = segments.at(-1)?.lastSeq ?? 0;
    for (const segment of segments.reverse()) {
      const tail = readTail("tape", segment, source.shard, facts);
      const { last, damage } = await tail.catch(damaged);
      if (damage !== undefined) onDamaged(damage);
      copier.#last = last && toTapeMessage(last);
      if (last !== undefined) break;
    }
    return copier;
  }

  /** Messages that the archive has, or had: a damaged segment counts. */
  get messages(): number {
    return this.#messages;
  }

  /** Bytes of the messages copied. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Copies the messages that came after the last one.
   * @throws DISK_FULL, IO; what the source throws, for example NO_BROKER; the reason of `signal`.
   */
  async copy(signal: AbortSignal): Promise<void> {
    const { source } = this.#deps;
    let batch: TapeFrame[] = [];
    let batchBytes = 0;
    for await (const message of readTapeAfter(source, this.#last, signal)) {
      const number = this.#messages + batch.length + 1;
      batch.push({ kind: "tape", shard: source.shard, number, ...message });
      batchBytes += message.data.length;
      if (batchBytes < BATCH_BYTES) continue;
      await this.#write(batch);
      [batch, batchBytes] = [[], 0];
    }
    await this.#write(batch);
  }

  async #write(batch: readonly TapeFrame[]): Promise<void> {
    const last = batch.at(-1);
    if (last === undefined) return;
    const { writer } = this.#deps;
    await writer.append(batch);
    await writer.sync();
    this.#last = toTapeMessage(last);
    this.#messages = last.number;
    this.#bytes += batch.reduce((sum, { data }) => sum + data.length, 0);
  }
}

/** A segment of which nothing can be read. */
function damaged(error: unknown): { last: undefined; damage: PserverError } {
  const damage = ensureError(error);
  if (damage.code !== "BAD_ARCHIVE") throw damage;
  return { last: undefined, damage };
}
