import { integerField, textField } from "../../protocol/index.ts";
import { RECORD_FORMAT, readRecord } from "../lifecycle/record-format.ts";

/**
 * The last record that an owner has folded, noted outside the journal: whoever takes the shard over
 * compares the journal with it.
 */
export interface HeadMark {
  /** Term of the owner that wrote it. */
  readonly term: number;
  readonly generation: number;
  /** Last record folded, with its checksum. */
  readonly seq: number;
  readonly recordCrc: number;
}

/** Key of a shard's mark in the job's bucket. */
export function headKey(shard: number): string {
  return `head.${shard}`;
}

/** A mark as its record holds it. */
export interface StoredMark {
  readonly mark: HeadMark;
  /** When the bucket was made that it was written for: one in another bucket is of a job that is gone. */
  readonly bucket: string;
}

/** The record of a mark, as JSON. */
export function toMarkRecord({ mark, bucket }: StoredMark): unknown {
  return { format: RECORD_FORMAT, ...mark, bucket };
}

/**
 * Parses the record of a mark.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseMark(value: unknown, key: string): StoredMark {
  return readRecord(value, key, (fields) => ({
    mark: {
      term: integerField(fields, "term", 1),
      generation: integerField(fields, "generation", 1),
      seq: integerField(fields, "seq", 1),
      recordCrc: integerField(fields, "recordCrc", 1),
    },
    bucket: textField(fields, "bucket"),
  }));
}

/** Whether `mark` is later than `other`; any mark is later than none. */
export function isLater(mark: HeadMark, other: HeadMark | undefined): boolean {
  if (other === undefined || mark.generation > other.generation) return true;
  return mark.generation === other.generation && mark.seq > other.seq;
}
