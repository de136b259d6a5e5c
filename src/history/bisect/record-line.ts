import { mapConcurrently } from "../../actors/concurrent.ts";
import type { Position } from "../../protocol/index.ts";
import type { Cut } from "../points/point.ts";
import type { HistorySource } from "../source.ts";

/** Shards that are read at one time. */
const SHARDS_AT_ONCE = 4;

/** A record of a line: where it is, and when the broker stored it. */
export interface LineRecord {
  readonly shard: number;
  readonly position: Position;
  readonly timeMs: number;
}

/** The records of all shards between two cuts, in the order of their times. */
export class RecordLine {
  readonly records: readonly LineRecord[];
  readonly #start: Cut;

  private constructor(start: Cut, records: readonly LineRecord[]) {
    this.#start = start;
    this.records = records;
  }

  /** Reads the times of the records; holds some ten bytes of each. @throws what the source throws. */
  static async read(
    source: HistorySource,
    start: Cut,
    end: Cut,
    signal: AbortSignal,
  ): Promise<RecordLine> {
    const read = async (shard: number): Promise<LineRecord[]> => {
      const [after, to] = [start[shard], end[shard]];
      const records: LineRecord[] = [];
      if (after === undefined || to === undefined) return records;
      for await (const batch of source.shard(shard).read(after, to.seq, signal)) {
        for (const { seq, timeMs } of batch) {
          records.push({ shard, position: { generation: to.generation, seq }, timeMs });
        }
      }
      return records;
    };
    const all = await mapConcurrently([...start.keys()], read, SHARDS_AT_ONCE);
    const inOrder = (a: LineRecord, b: LineRecord): number =>
      a.timeMs - b.timeMs || a.shard - b.shard || a.position.seq - b.position.seq;
    return new RecordLine(start, all.flat().sort(inOrder));
  }

  /** The cut after the first so many records. */
  cutAfter(count: number): Cut {
    const cut = [...this.#start];
    for (const { shard, position } of this.records.slice(0, count)) cut[shard] = position;
    return cut;
  }
}
