import type { PserverError } from "../protocol/errors.ts";
import { laterPosition, type Position } from "../protocol/outcomes.ts";

/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
export class Positions {
  readonly #byShard = new Map<number, Position>();
  /** Those of what this trainer has itself written or read. */
  readonly #seen = new Map<number, Position>();
  readonly #onReplaced: (shard: number, seen: Position) => void;

  /** `onReplaced` gets the last position seen of a journal, once one of a later generation is known. */
  constructor(onReplaced: (shard: number, seen: Position) => void = () => undefined) {
    this.#onReplaced = onReplaced;
  }

  /** Takes a position into account that was seen; a lower one changes nothing. */
  note(shard: number, { generation, seq }: Position): void {
    // Of a reply only its position is kept: the rest holds the bytes of a block.
    const position = { generation, seq };
    const before = this.#seen.get(shard);
    this.#seen.set(shard, laterPosition(before, position));
    this.await(shard, position);
    if (before !== undefined && generation > before.generation) this.#onReplaced(shard, before);
  }

  /** Takes a position into account that reads must have reached, though nothing of it was seen. */
  await(shard: number, { generation, seq }: Position): void {
    this.#byShard.set(shard, laterPosition(this.#byShard.get(shard), { generation, seq }));
  }

  /** The position in a shard; its beginning if nothing was seen. */
  get(shard: number): Position {
    return this.#byShard.get(shard) ?? { generation: 1, seq: 0 };
  }

  /** Every position seen, as `finish` sends them. */
  list(): (Position & { readonly shard: number })[] {
    return [...this.#byShard]
      .map(([shard, { generation, seq }]) => ({ shard, generation, seq }))
      .sort((a, b) => a.shard - b.shard);
  }
}

/**
 * After JOURNAL_REPLACED: positions of the old generation mean nothing any more. The error names
 * where the new journal stands.
 */
export function noteReplaced(positions: Positions, shard: number, error: PserverError): void {
  const { generation } = expectedPosition(error);
  if (generation !== undefined) positions.note(shard, { generation, seq: 0 });
}

/** The position that an error says was expected, as far as it says one. */
export function expectedPosition({ details }: PserverError): Partial<Position> {
  const { expected } = details;
  if (typeof expected !== "object" || expected === null) return {};
  const { generation, seq } = expected as Partial<Position>;
  return {
    ...(typeof generation === "number" ? { generation } : {}),
    ...(typeof seq === "number" ? { seq } : {}),
  };
}
