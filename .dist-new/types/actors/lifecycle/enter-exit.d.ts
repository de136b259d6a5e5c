import { type Fields } from "../../protocol/index.ts";
import { type Members } from "./members.ts";
import { type SessionDeps } from "./sessions.ts";
/**
 * Makes a session a member of the job's steps, and tells the journals. A repeat changes nothing and tells them again.
 * @throws UNSUPPORTED in a job whose trainers do not keep step; NOT_MEMBER if the session has exited after it sent
 * this request.
 */
export declare function enter(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields>;
/**
 * Ends a session's membership: nobody waits for it any more. Requests to enter that it sent earlier are refused if
 * they come later.
 * @throws UNSUPPORTED as {@link enter}.
 */
export declare function exit(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields>;
/**
 * Removes the members whose lease is lost or whose session has ended, and returns those that are left. Looks up the
 * sessions of members whose leases are lost, and of `count` others from the `from`-th on.
 */
export declare function expelLost(deps: SessionDeps, sample: {
    readonly from: number;
    readonly count: number;
}): Promise<Members>;
//# sourceMappingURL=enter-exit.d.ts.map