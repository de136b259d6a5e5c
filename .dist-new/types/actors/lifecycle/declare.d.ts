import { type Declaration, type Fields, type Layout } from "../../protocol/index.ts";
import type { Counter } from "./counter.ts";
import { type InitializationDeps } from "./initialization.ts";
/** Dependencies of declarations. */
export interface DeclareDeps extends InitializationDeps {
    /** Counter of the numbers of blocks. */
    readonly numbers: Counter;
    readonly smallParameters: SmallParameters;
}
/**
 * Declares parameters of the job's initialization and replies with their layouts and epochs, in request
 * order. All are checked before any is written, so a refusal changes nothing. The journals are told
 * before the trainer is.
 * @throws QUOTA, NO_SPACE if the broker cannot reserve what they take, and as {@link requireSelected}.
 */
export declare function declare(deps: DeclareDeps, trainer: string, fields: Fields): Promise<Fields>;
/**
 * Selects this session to initialize one parameter, whatever the job's state, unless another session initializes it
 * or has. Replies with the parameter as it is declared now: by this session if it is selected, else by the session
 * that was first. It can be taken over as in `begin`.
 */
export declare function create(deps: DeclareDeps, trainer: string, fields: Fields): Promise<Fields>;
/** An initialization of the job, by which parameters are declared. */
export interface Initialization {
    readonly session: number;
    readonly epoch: number;
}
/**
 * Places the small parameters that one initialization declares one after the other on one shard until they fill a
 * batch, then on the next shard: so a training step costs a record for each MiB and not for each parameter. The first
 * shard is that of the first name's hash. Only this host knows what it placed last: parameters declared through
 * several hosts fill several shards at a time.
 */
export declare class SmallParameters {
    #private;
    constructor(shards: number);
    /**
     * Returns the layout of a new parameter, on the shard where it belongs. `layout` lies on the shard of the name's
     * hash.
     */
    place(layout: Layout, declaration: Declaration, { session, epoch }: Initialization): Layout;
}
//# sourceMappingURL=declare.d.ts.map