import type { KnownVersions } from "../../client/admin/job-admin.ts";
import type { TensorData } from "../../protocol/dtypes.ts";
import type { BlockVersions } from "../../protocol/messages/reads.ts";
import { type Tensor } from "../../protocol/tensor.ts";
/**
 * Writes one element as a short text that reads back as the same value of its type: a float32 as `0.1`, not as
 * `0.10000000149011612`.
 */
export declare function formatElement(data: TensorData, index: number): string;
/**
 * Returns one element as JSON, as protobuf's JSON has it: numbers, but 64-bit integers and NaN, Infinity and
 * -Infinity as strings, because JSON readers cannot hold them as numbers.
 */
export declare function jsonElement(data: TensorData, index: number): string;
/** Writes a shape as numpy prints it: `(3, 4)`, `(3,)`, `()`. */
export declare function formatShape(shape: readonly number[]): string;
/**
 * Shows a tensor in lines, as numpy prints an array: small ones whole, else each axis's ends. `facts` are
 * further entries of the line above.
 */
export declare function summarizeTensor(name: string, tensor: Tensor, facts?: readonly string[], lineWidth?: number): string[];
/** Says why some versions are not known; undefined if all are. */
export declare function describeUnknown({ silentShards, refusal }: KnownVersions): string | undefined;
/** Returns versions as `--json` has them; both null where they are not known. */
export declare function versionEntries(known: BlockVersions | undefined): {
    readonly version: {
        readonly least: number;
        readonly most: number;
    } | null;
    readonly updates: number | null;
};
/**
 * Writes the version for people: one number if all blocks agree, else the lowest and the highest; `?` if
 * unknown.
 */
export declare function describeVersion(known: BlockVersions | undefined): string;
/** Writes the changes of blocks for people; `?` if unknown. */
export declare function describeUpdates(known: BlockVersions | undefined): string;
//# sourceMappingURL=tensor-summary.d.ts.map