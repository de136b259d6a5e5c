import { integerField } from "../../protocol/index.ts";
import { RECORD_FORMAT, readRecord } from "../lifecycle/record-format.ts";

/**
 * How far an owner had folded the journal of its shard, noted outside the journal. Whoever takes the
 * shard over knows by it what the journal must still hold.
 */
export interface HeadMark {
  /** Of the owner that noted it. */
  readonly term: number;
  readonly generation: number;
  /** The last record that was folded, and the checksum in it. */
  readonly seq: number;
  readonly recordCrc: number;
}

/** Key of a shard's mark in the job's bucket. */
export function headKey(shard: number): string {
  return `head.${shard}`;
}

/** The mark as its record, readable JSON. */
export function toMarkRecord(mark: HeadMark): unknown {
  return { format: RECORD_FORMAT, ...mark };
}

/**
 * The mark in a record.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseMark(value: unknown, key: string): HeadMark {
  return readRecord(value, key, (fields) => ({
    term: integerField(fields, "term", 1),
    generation: integerField(fields, "generation", 1),
    seq: integerField(fields, "seq", 1),
    recordCrc: integerField(fields, "recordCrc", 1),
  }));
}

/** Whether `mark` says more than `other`; undefined says nothing. */
export function saysMore(mark: HeadMark, other: HeadMark | undefined): boolean {
  if (other === undefined || mark.generation > other.generation) return true;
  return mark.generation === other.generation && mark.seq > other.seq;
}
