import { type ServedVerification, type ShardVerification } from "../../history/verify.ts";
import type { TextFormat } from "../output/colors.ts";
/** The findings about one shard; `served` is undefined if hosts cannot be asked about it. */
export interface VerifiedShard {
    readonly verification: ShardVerification;
    readonly served: ServedVerification | undefined;
}
/** Whether no finding about a shard is of damage or a difference. */
export declare function isWhole({ verification, served }: VerifiedShard): boolean;
/** Whether anything was compared: a recorded file may hold one snapshot of each shard, from which it begins. */
export declare function isCompared({ verification, served }: VerifiedShard): boolean;
/** Returns the findings about a shard as `--json` prints them. */
export declare function verificationEntry({ verification, served }: VerifiedShard): unknown;
/** Writes the findings as a table. */
export declare function describeVerifications(found: readonly VerifiedShard[], format: TextFormat): string[];
/** Lists differences and damage, a line each. */
export declare function describeProblems(found: readonly VerifiedShard[]): string[];
//# sourceMappingURL=describe-verifications.d.ts.map