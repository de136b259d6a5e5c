import { laterPosition, type Position } from "../../protocol/messages/position.ts";
import { expectedPosition, type Failure } from "./block-update.ts";
import type { PositionsListener } from "./commands.ts";

const BEGINNING: Position = { generation: 1, seq: 0 };

/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
export class Positions {
  /** By shard: positions that reads must have reached. */
  readonly #awaited: (Position | undefined)[] = [];
  /** By shard: positions of what this trainer has itself written or read. */
  readonly #seen: (Position | undefined)[] = [];
  readonly #listener: PositionsListener;

  constructor(listener: PositionsListener) {
    this.#listener = listener;
  }

  /** Takes a position into account that was seen; a lower one changes nothing. */
  note(shard: number, { generation, seq }: Position): void {
    // Of a reply only its position is kept: the rest holds the bytes of a block.
    const position = { generation, seq };
    const before = this.#seen[shard];
    this.#seen[shard] = laterPosition(before, position);
    this.await(shard, position);
    if (before !== undefined && generation > before.generation) {
      this.#listener.journalReplaced(shard, before);
    }
  }

  /** Takes a position into account that reads must have reached, though nothing of it was seen. */
  await(shard: number, { generation, seq }: Position): void {
    this.#awaited[shard] = laterPosition(this.#awaited[shard], { generation, seq });
  }

  /** The position in a shard; its beginning if nothing was seen. */
  get(shard: number): Position {
    return this.#awaited[shard] ?? BEGINNING;
  }

  /** Every position, as `finish` sends them, in the order of shards. */
  list(): (Position & { readonly shard: number })[] {
    return this.#awaited.flatMap((position, shard) =>
      position === undefined ? [] : [{ shard, ...position }],
    );
  }
}

/**
 * After JOURNAL_REPLACED: positions of the old generation mean nothing any more. The failure names
 * where the new journal stands.
 */
export function noteReplaced(positions: Positions, shard: number, failure: Failure): void {
  const { generation } = expectedPosition(failure);
  if (generation > 0) positions.note(shard, { generation, seq: 0 });
}
