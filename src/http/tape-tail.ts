import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import type {
  HistorySource,
  ShardHistory,
  StoredTapeMessage,
  TapeStart,
} from "../history/source.ts";
import { tapeUpdates } from "../history/update-stream.ts";
import type { Position } from "../protocol/index.ts";

/** Updates, and notes besides, that one look keeps of each shard: the newest. */
const KEPT_MAX = 100;

const BEGINNING: Position = { generation: 0, seq: 0 };
const END: Position = { generation: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER };

/** How far the tape of a shard was read. */
interface Place {
  /** The last message of the tape that was read; undefined before the first. */
  readonly messageSeq: number | undefined;
  /** The last record of which there were lines. */
  readonly covered: Position;
}

/** What a look has found. */
interface Found {
  /** In the order of their times. */
  readonly updates: readonly UpdateEvent[];
  /** Updates that there were besides. */
  readonly dropped: number;
}

/**
 * Follows the tapes of a job, for those who look at it live: each message is read once, and where more is updated than
 * anybody could look at, only the newest updates are told. So following a busy job costs little more than following an
 * idle one.
 */
export class TapeTail {
  readonly #sinceMs: number;
  readonly #places: Map<number, Place> = new Map();

  /** Follows what is stored after a time, in milliseconds since 1970. */
  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  /** Reads what is new on the tapes of these shards. @throws what the source throws; the reason of the signal. */
  async read(
    source: HistorySource,
    shards: readonly number[],
    signal: AbortSignal,
  ): Promise<Found> {
    const found = await Promise.all(
      shards.map((shard) => this.#readShard(source.shard(shard), signal)),
    );
    const updates = found.flatMap((each) => each.updates).sort((a, b) => a.timeMs - b.timeMs);
    return { updates, dropped: found.reduce((sum, { dropped }) => sum + dropped, 0) };
  }

  async #readShard(history: ShardHistory, signal: AbortSignal): Promise<Found> {
    const { shard } = history;
    let { messageSeq, covered } = this.#places.get(shard) ?? {
      messageSeq: undefined,
      covered: BEGINNING,
    };
    const start: TapeStart =
      messageSeq === undefined
        ? { kind: "time", timeMs: this.#sinceMs }
        : { kind: "message", seq: messageSeq + 1 };
    async function* newMessages(): AsyncGenerator<StoredTapeMessage> {
      for await (const message of history.readTape?.(start, signal) ?? []) {
        yield message;
        messageSeq = message.seq;
      }
    }
    const tape = { shard, readTape: newMessages };
    const newest = new Newest();
    for await (const part of tapeUpdates(tape, covered, END, this.#sinceMs, signal)) {
      for (const event of part.events) newest.add(event);
      covered = part.covered;
      this.#places.set(shard, { messageSeq, covered });
    }
    this.#places.set(shard, { messageSeq, covered });
    return newest.found;
  }
}

/** The newest updates, and the newest notes, which are rarer and of which charts are made. */
class Newest {
  readonly #updates: UpdateEvent[] = [];
  readonly #notes: UpdateEvent[] = [];
  #dropped = 0;

  add(event: UpdateEvent): void {
    const list = event.note === undefined ? this.#updates : this.#notes;
    list.push(event);
    // Shortened now and then, not at each update.
    if (list.length < 2 * KEPT_MAX) return;
    list.splice(0, KEPT_MAX);
    this.#dropped += KEPT_MAX;
  }

  get found(): Found {
    return { updates: [...this.#updates, ...this.#notes], dropped: this.#dropped };
  }
}
