import { type NotedChecksum } from "../fold/journal-checksum.ts";
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
/** Returns the key of a shard's watermark in the job's bucket. */
export declare function watermarkKey(shard: number): string;
/** Returns the watermark for this progress, after a former watermark. */
export declare function nextWatermark(progress: FoldProgress, former: Watermark | undefined): Watermark;
/**
 * Returns the checksums that a watermark has noted of a generation's journal, ascending; none if it is of another
 * generation.
 */
export declare function notedChecksums(watermark: Watermark | undefined, generation: number): NotedChecksum[];
/** A watermark as its entry holds it. */
export interface StoredWatermark {
    readonly watermark: Watermark;
    /** When its bucket was made. A watermark with the time of another bucket belongs to a job that is gone. */
    readonly bucket: string;
}
/** Returns the entry of a watermark, as JSON. */
export declare function toWatermarkEntry({ watermark, bucket }: StoredWatermark): unknown;
/**
 * Parses the entry of a watermark.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export declare function parseWatermark(value: unknown, key: string): StoredWatermark;
/** Whether `watermark` is later than `other`; any watermark is later than none. */
export declare function isLater(watermark: FoldProgress, other: FoldProgress | undefined): boolean;
//# sourceMappingURL=watermark.d.ts.map