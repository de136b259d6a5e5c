import { type Fields } from "../../protocol/index.ts";
import { type DeclaredLedger } from "./declared-ledger.ts";
import { type Lifecycle } from "./machine.ts";
import { type Parameter } from "./parameter.ts";
import { type SessionDeps } from "./sessions.ts";
import { type ShardComparison } from "./shard-comparison.ts";
/** Dependencies of initializations. */
export interface InitializationDeps extends SessionDeps {
    readonly ledger: DeclaredLedger;
    readonly comparison: ShardComparison;
}
/** A trainer that claims to initialize, as the subject and the fields of its request name it. */
export interface Claimant {
    readonly trainer: string;
    readonly session: number;
    readonly epoch: number;
}
/**
 * Checks that this session is the one that initializes the job, or `parameter`, under this epoch.
 * @throws ALREADY_INITIALIZED if it is ready, STALE_EPOCH if another initialization has replaced
 * the claimant's or it was aborted, NOT_SELECTED in any other case.
 */
export declare function requireSelected(lifecycle: Lifecycle, claimant: Claimant, parameter?: string): void;
/** Whether the session that initializes counts as dead. */
export declare function isAbandoned(deps: InitializationDeps, lifecycle: Lifecycle): Promise<boolean>;
/** Ends the job's initialization if the selected session counts as dead, and returns the job. */
export declare function abortAbandonedJob(deps: InitializationDeps): Promise<Lifecycle>;
/**
 * Selects this session to initialize the job, unless another session initializes it or has. The selected session
 * stays selected however often it asks. A newer session of the same trainer takes its place under the next epoch, and
 * so does any session once the selected one is gone.
 * @throws JOB_DAMAGED if a shard knows that the job was initialized; the error of an owner that cannot say.
 */
export declare function begin(deps: InitializationDeps, trainer: string, fields: Fields): Promise<Fields>;
/** Aborts an initialization, of the job or of one parameter. What is ready stays ready. */
export declare function abort(deps: InitializationDeps, trainer: string, fields: Fields): Promise<Fields>;
/**
 * Checks that the hosts can hold new parameters, as far as can be known before their values are sent.
 * @throws NO_MEMORY naming the host that cannot.
 */
export declare function requireMemory(deps: InitializationDeps, parameters: readonly Parameter[]): Promise<void>;
/**
 * Finishes an initialization, of the job or of one parameter, once every declared block exists; if the journals are
 * in memory, once a snapshot holds them. The journals are told, too, before the trainer is. Replies with the ends of the journals. A repeat by the session that finished
 * gets the same reply.
 */
export declare function finish(deps: InitializationDeps, trainer: string, fields: Fields): Promise<Fields>;
/** Result of {@link takeBackLost}. */
export interface TakenBack {
    /** Names of the parameters, sorted. */
    readonly parameters: readonly string[];
    /** Whether no parameter is left, so that the job is to be initialized again. */
    readonly isJob: boolean;
}
/**
 * Makes parameters that a shard has lost initializable again. Their entries lie on file and say that they are
 * initialized, but the shard, which is served, lacks blocks of them: its journal was in memory. If no parameter is
 * left, the whole job is to be initialized again; if some are left, it stays initialized, and the lost ones can be
 * created one by one. A repeat changes nothing.
 *
 * Call it only for a job with journals in memory: a shard on file that lacks blocks is stopped, and an operator may
 * get them back.
 */
export declare function takeBackLost(deps: InitializationDeps, shard: number): Promise<TakenBack>;
//# sourceMappingURL=initialization.d.ts.map