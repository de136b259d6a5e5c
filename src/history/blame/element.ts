import type { BlockHeader } from "../../actors/fold/block.ts";
import { parseFoldState } from "../../actors/fold/fold-state.ts";
import type { PieceRef } from "../../actors/snapshot/manifest.ts";
import { readSnapshotState } from "../../actors/snapshot/state.ts";
import {
  elementCount,
  JobSubjects,
  type Position,
  PserverError,
  quoteName,
} from "../../protocol/index.ts";
import type { Cut } from "../points/point.ts";
import { basesBefore, takeInventory } from "../reach.ts";
import { replayShard } from "../replay/replay-shard.ts";
import type { HistorySource, ShardHistory } from "../source.ts";

/** An element as somebody names it. */
export interface ElementName {
  readonly parameter: string;
  readonly indices: readonly number[];
}

/** Where an element is. */
export interface ElementPlace extends ElementName {
  readonly shard: number;
  /** Number of its block. */
  readonly index: number;
  /** Its place in the parameter, in C order. */
  readonly element: number;
}

/**
 * The element that a text such as `w[3,4]` or, of a scalar, `s` names.
 * @throws BAD_VALUE if the indices are not whole numbers.
 */
export function parseElement(text: string): ElementName {
  const match = /^(.+)\[([0-9, ]*)\]$/s.exec(text);
  if (match === null) return { parameter: text, indices: [] };
  const [, parameter = "", list = ""] = match;
  const indices = list.trim() === "" ? [] : list.split(",").map((each) => each.trim());
  if (indices.every((each) => /^\d{1,15}$/.test(each))) {
    return { parameter, indices: indices.map(Number) };
  }
  throw new PserverError(
    "BAD_VALUE",
    `element: expected PARAM[i,j], with an index for each dimension; received ${JSON.stringify(text)}`,
    { received: text },
  );
}

/**
 * Finds the block and the shard of an element, by the parameter's form at a cut.
 * @throws UNKNOWN_PARAMETER if no such parameter was there, BAD_INDEX if it has no such element; as
 * `replayShard`.
 */
export async function locateElement(
  source: HistorySource,
  cut: Cut,
  name: ElementName,
  signal: AbortSignal,
): Promise<ElementPlace> {
  const { parameter } = name;
  const held =
    (await findHeld(source, cut, (history, to) => ofSnapshot(history, to, parameter))) ??
    (await findHeld(source, cut, (history, to) =>
      ofReplay(history, to, parameter, source.job, signal),
    ));
  if (held === undefined) {
    const text = `no parameter ${quoteName(parameter)} existed at that point`;
    throw new PserverError("UNKNOWN_PARAMETER", text, { parameter });
  }
  const { header } = held;
  const element = placeOf(name, header.shape);
  const index = Math.floor(element / blockElements(header));
  // Consecutive blocks are in consecutive shards.
  const ahead = (((index - header.index) % source.shards) + source.shards) % source.shards;
  return { ...name, element, index, shard: (held.shard + ahead) % source.shards };
}

/** A block of a parameter, and the shard that holds it. */
interface HeldBlock {
  readonly shard: number;
  readonly header: BlockHeader;
}

/** The first block that `look` finds in a shard. */
async function findHeld(
  source: HistorySource,
  cut: Cut,
  look: (history: ShardHistory, to: Position) => Promise<BlockHeader | undefined>,
): Promise<HeldBlock | undefined> {
  for (const [shard, to] of cut.entries()) {
    const header = await look(source.shard(shard), to);
    if (header !== undefined) return { shard, header };
  }
  return undefined;
}

/** One of a parameter's blocks in the newest snapshot of a shard before a position; reads no values. */
async function ofSnapshot(
  history: ShardHistory,
  to: Position,
  parameter: string,
): Promise<BlockHeader | undefined> {
  const [base] = basesBefore(await takeInventory(history), to);
  if (base.snapshot === undefined) return undefined;
  const store = { read: (ref: PieceRef) => history.piece(ref) };
  const { fold } = await readSnapshotState(store, base.snapshot.manifest);
  return parseFoldState(fold).blocks.find((header) => header.parameter === parameter);
}

/** One of a parameter's blocks in a shard as it was at a position. */
async function ofReplay(
  history: ShardHistory,
  to: Position,
  parameter: string,
  job: string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  const subjects = new JobSubjects(job);
  const shard = await replayShard(history, to, { subjects, signal });
  return shard.saveState().blocks.find((header) => header.parameter === parameter);
}

/** Elements of every block of a parameter but the last, by one of its blocks. */
function blockElements({ index, start, count }: BlockHeader): number {
  return index === 0 ? count : start / index;
}

/** The place of an element in C order. @throws BAD_INDEX */
function placeOf({ parameter, indices }: ElementName, shape: readonly number[]): number {
  const isInside =
    indices.length === shape.length && indices.every((at, axis) => at < (shape[axis] ?? 0));
  if (isInside) return indices.reduce((place, at, axis) => place * (shape[axis] ?? 1) + at, 0);
  throw new PserverError(
    "BAD_INDEX",
    `${quoteName(parameter)} has shape [${shape}], ${elementCount(shape)} elements; received [${indices}]`,
    { parameter, expected: shape, received: indices },
  );
}
