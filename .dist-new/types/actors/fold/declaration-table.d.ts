import type { DeclareRecord, GrantedParameter } from "../../protocol/messages/host-records.ts";
import type { InitRecord } from "../../protocol/messages/records.ts";
import { type BlockName } from "./block-actor.ts";
/** A parameter that hosts have granted to one trainer. */
export interface DeclaredParameter extends GrantedParameter {
    /** The trainer that may initialize it. */
    readonly trainer: string;
}
/** Parameters that hosts have declared to a shard: what their blocks are and who may create them. */
export declare class DeclarationTable {
    #private;
    constructor(shard: number);
    /** Number of declared parameters. */
    get count(): number;
    /** All entries by name, in order of UTF-16 code units. */
    sorted(): DeclaredParameter[];
    /** Adds parameters, or replaces those declared under a lower epoch. Ignores new names beyond `declaredMax`. */
    take({ trainer, parameters }: DeclareRecord, declaredMax: number): void;
    /** Removes a parameter unless it was declared under a higher epoch than `epoch`. */
    drop(parameter: string, epoch: number): void;
    /** Restores a saved parameter. @throws SNAPSHOT_DAMAGED if there is one of its name already. */
    restore(declared: DeclaredParameter): void;
    /**
     * Passes if an `init` creates its block as declared.
     * @throws UNKNOWN_PARAMETER, STALE_EPOCH, NOT_SELECTED, BAD_DTYPE, BAD_SHAPE, BAD_VALUE or BAD_CONFIG
     */
    check(trainer: string, { parameter, index }: BlockName, record: InitRecord): void;
}
//# sourceMappingURL=declaration-table.d.ts.map