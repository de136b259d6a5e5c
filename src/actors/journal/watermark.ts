import {
  checksum,
  type Fields,
  integerField,
  listField,
  PserverError,
  textField,
} from "../../protocol/index.ts";
import { checksumField, type NotedChecksum } from "../fold/journal-checksum.ts";
import { ENTRY_FORMAT, readEntry } from "./kv-bucket.ts";

/**
 * How far an owner has folded, noted outside the journal; whoever takes the shard over compares the journal with it.
 */
export interface Watermark extends NotedChecksum {
  /** Term of the owner that wrote it. */
  readonly term: number;
  readonly generation: number;
  /** Checksum in the envelope of record `seq`, the last one folded; 0 if it is unreadable. */
  readonly recordCrc: number;
  /**
   * Checksums that earlier watermarks of the generation have noted, ascending; the further back, the further apart.
   */
  readonly earlier: readonly NotedChecksum[];
}

/** A watermark without the checksums of earlier ones. */
export type FoldProgress = Omit<Watermark, "earlier">;

/** Limit of the earlier checksums in a watermark. */
const EARLIER_MAX = 16;

/** Returns the key of a shard's watermark in the job's bucket. */
export function watermarkKey(shard: number): string {
  return `head.${shard}`;
}

/** Returns the watermark for this progress, after a former watermark. */
export function nextWatermark(progress: FoldProgress, former: Watermark | undefined): Watermark {
  if (former?.generation !== progress.generation) return { ...progress, earlier: [] };
  const { seq, checksum } = former;
  return { ...progress, earlier: thinned([...former.earlier, { seq, checksum }]) };
}

/**
 * Returns the checksums that a watermark has noted of a generation's journal, ascending; none if it is of another
 * generation.
 */
export function notedChecksums(
  watermark: Watermark | undefined,
  generation: number,
): NotedChecksum[] {
  return watermark?.generation === generation ? [...watermark.earlier, watermark] : [];
}

/** A watermark as its entry holds it. */
export interface StoredWatermark {
  readonly watermark: Watermark;
  /** When its bucket was made. A watermark with the time of another bucket belongs to a job that is gone. */
  readonly bucket: string;
}

/** Returns the entry of a watermark, as JSON. */
export function toWatermarkEntry({ watermark, bucket }: StoredWatermark): unknown {
  const { term, generation, seq, recordCrc } = watermark;
  const earlier = watermark.earlier.map((each) => [each.seq, ...each.checksum]);
  const fields = {
    term,
    generation,
    seq,
    recordCrc,
    checksum: watermark.checksum,
    earlier,
    bucket,
  };
  return { format: ENTRY_FORMAT, ...fields, crc: crcOf(fields) };
}

/**
 * Parses the entry of a watermark.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseWatermark(value: unknown, key: string): StoredWatermark {
  return readEntry(value, key, ({ format: _, crc: expected, ...fields }) => {
    const received = crcOf(fields);
    if (expected !== received) {
      const text = `checksum: expected ${String(expected)}; its entries give ${received}`;
      throw new PserverError("BAD_CHECKSUM", text, { expected, received });
    }
    return {
      watermark: {
        term: integerField(fields, "term", 1),
        generation: integerField(fields, "generation", 1),
        seq: integerField(fields, "seq", 1),
        recordCrc: integerField(fields, "recordCrc"),
        checksum: checksumField(fields, "checksum"),
        earlier: listField(fields, "earlier", EARLIER_MAX).map(toNoted),
      },
      bucket: textField(fields, "bucket"),
    };
  });
}

/**
 * Drops one checksum if there is one too many: the one whose removal leaves the shortest stretch of records for its
 * age.
 */
function thinned(noted: readonly NotedChecksum[]): NotedChecksum[] {
  const seqs = noted.map(({ seq }) => seq);
  const lastSeq = seqs.at(-1) ?? 0;
  const growth = seqs.map((seq, i) => {
    const records = (seqs[i + 1] ?? Number.POSITIVE_INFINITY) - (seqs[i - 1] ?? 0);
    return records / (lastSeq - seq);
  });
  const least = noted.length > EARLIER_MAX ? growth.indexOf(Math.min(...growth)) : undefined;
  return noted.filter((_, i) => i !== least);
}

function toNoted(value: unknown): NotedChecksum {
  const [seq, ...checksum] = listField({ noted: value }, "noted", 4);
  return {
    seq: integerField({ seq }, "seq", 1),
    checksum: checksumField({ checksum }, "checksum"),
  };
}

/** Computes the checksum of a watermark's fields, in the order in which they are written. */
function crcOf(fields: Fields): number {
  return checksum(Buffer.from(JSON.stringify(fields)));
}

/** Whether `watermark` is later than `other`; any watermark is later than none. */
export function isLater(watermark: FoldProgress, other: FoldProgress | undefined): boolean {
  if (other === undefined || watermark.generation > other.generation) return true;
  return watermark.generation === other.generation && watermark.seq > other.seq;
}
