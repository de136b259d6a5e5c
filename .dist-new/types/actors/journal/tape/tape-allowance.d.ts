import type { LeftOutRecords } from "../describe-record.ts";
/** Records without lines, and whether a line is to say so. */
export interface LeftOut extends LeftOutRecords {
    readonly isTold: boolean;
}
/**
 * Divides the tape of a shard between trainers. Each has an allowance of bytes, which comes back with time; while it
 * is used up, the trainer's records get no lines. So nobody can fill the tape with lines of its own, before which all
 * others' would be dropped, in less than some hours. Times are those of the records.
 */
export declare class TapeAllowance {
    #private;
    /** `bytesMax`: bytes of the shard's part of the tape. */
    constructor(bytesMax: number);
    /**
     * Decides whether a trainer's next record gets no line. Returns the records that have none, with this one; undefined
     * if it gets its line.
     */
    leaveOut(trainer: string, { seq, timeMs }: {
        readonly seq: number;
        readonly timeMs: number;
    }): LeftOut | undefined;
    /** Adds bytes that a trainer's lines have taken. */
    charge(trainer: string, bytes: number): void;
}
//# sourceMappingURL=tape-allowance.d.ts.map