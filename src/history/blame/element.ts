import type { BlockHeader } from "../../actors/fold/block.ts";
import { parseFoldState } from "../../actors/fold/fold-state.ts";
import { readSnapshotState } from "../../actors/snapshot/state.ts";
import {
  elementCount,
  hashName,
  JobSubjects,
  type Position,
  PserverError,
  quoteName,
  shardOfBlock,
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
  // Its first block is there, whatever its size.
  const shard = hashName(parameter) % source.shards;
  const to = cut[shard];
  const header = to && (await findHeader(source.shard(shard), to, parameter, source.job, signal));
  if (header === undefined) {
    const text = `no parameter ${quoteName(parameter)} existed at that point`;
    throw new PserverError("UNKNOWN_PARAMETER", text, { parameter });
  }
  const element = placeOf(name, header.shape);
  const index = Math.floor(element / blockElements(header));
  return { ...name, element, index, shard: shardOfBlock(parameter, index, source.shards) };
}

/** The header of one of a parameter's blocks in a shard: of its newest snapshot, or else of the shard. */
async function findHeader(
  history: ShardHistory,
  to: Position,
  parameter: string,
  job: string,
  signal: AbortSignal,
): Promise<BlockHeader | undefined> {
  const [base] = basesBefore(await takeInventory(history), to);
  const isOfParameter = (header: BlockHeader): boolean => header.parameter === parameter;
  if (base.snapshot !== undefined) {
    const store = { read: (ref: Parameters<ShardHistory["piece"]>[0]) => history.piece(ref) };
    const { fold } = await readSnapshotState(store, base.snapshot.manifest);
    const known = parseFoldState(fold).blocks.find(isOfParameter);
    if (known !== undefined) return known;
  }
  const subjects = new JobSubjects(job);
  const shard = await replayShard(history, to, { subjects, signal });
  return shard.saveState().blocks.find(isOfParameter);
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
