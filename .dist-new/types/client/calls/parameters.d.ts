import { type ParameterInfo, type StatusReply, type StatusRequest } from "../../protocol/messages/lifecycle-messages.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Session } from "../io/session.ts";
import { type Deadline } from "./calls.ts";
/** Caches type, shape, layout and epoch of the job's parameters that are ready. */
export declare class Parameters {
    #private;
    /** `payloadBytesMax`: the largest message the broker takes. */
    constructor(session: Session, positions: Positions, payloadBytesMax: () => number);
    /** Forgets a parameter, whose epoch has changed. */
    forget(name: string): void;
    /**
     * Returns the parameters, in request order, without waiting for their initialization.
     * @throws BAD_NAME, UNKNOWN_PARAMETER, or NOT_INITIALIZED while the job or a parameter is not.
     */
    require(names: readonly string[], deadline: Deadline): Promise<readonly ParameterInfo[]>;
    /**
     * Returns the parameters, in request order, once all of them are initialized.
     * @throws BAD_NAME, and UNKNOWN_PARAMETER as soon as the job is initialized without one; at the deadline
     * NOT_INITIALIZED.
     */
    waitFor(names: readonly string[], deadline: Deadline): Promise<readonly ParameterInfo[]>;
    /**
     * Looks the parameter up again. Calls share one look-up; if the call that began it ends first, another call
     * begins a new one.
     */
    refresh(name: string, deadline: Deadline): Promise<ParameterInfo>;
    /** Looks parameters up again, many in one request; returns them in request order. */
    refreshAll(names: readonly string[], deadline: Deadline): Promise<readonly ParameterInfo[]>;
    /** Asks for the state of the job and parameters: those named, or a page in the order of names. */
    status(request: StatusRequest, deadline: Deadline): Promise<StatusReply>;
}
/**
 * Remembers the version of each block that this trainer read last, which its next gradient is made from.
 * A gradient names it, so that the history tells how old the values were, whether or not the
 * parameter's learning rate depends on it.
 */
export declare class SeenVersions {
    #private;
    /** Notes the version of a block that was read, by its number. */
    note(number: number, version: number): void;
    /** Forgets all versions, after a shard has undone some of them. */
    clear(): void;
    /** Returns the version of a block last read; undefined if there is none. */
    get(number: number): number | undefined;
}
//# sourceMappingURL=parameters.d.ts.map