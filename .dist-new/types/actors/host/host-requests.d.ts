import type { NatsConnection } from "@nats-io/transport-node";
import { type Fields, type JobSubjects, type Message } from "../../protocol/index.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import { type LaneOptions, type RefusalBudget } from "../owner/fair-server.ts";
import type { ControlService } from "./control-service.ts";
/**
 * Answers one request: returns the entries of the reply, or throws the error that the reply carries. Before that it
 * may send messages with `tell`, which go to inboxes of the asker only.
 */
type RequestHandler = (asker: string, verb: string, message: Message, tell: (inbox: string, entries: Fields) => void) => Promise<Fields>;
/** One kind of requests: those to one subject, whose last tokens are the asker's id and the verb. */
interface RequestKind {
    readonly subject: string;
    /** Whether every host gets each request; if not, one host does. */
    readonly isForAll?: boolean;
    /** The verbs that are taken, in the order in which they are served. */
    readonly lanes: readonly (LaneOptions & {
        readonly verbs: readonly string[];
    })[];
    readonly handle: RequestHandler;
    /** Called for each request from another account of the broker; none of them is answered. */
    readonly onOtherAccount?: (trainer: string) => void;
}
/** The connection on which the requests to a host arrive and are answered. */
interface RequestConnection {
    readonly connection: NatsConnection;
    /** Counts the refusals of every trainer on this connection. */
    readonly refusals: RefusalBudget;
    readonly subjects: JobSubjects;
}
/** Begins to answer the lifecycle and control requests of a job; the caller closes what is returned. */
export declare function serveRequests(reception: RequestConnection, lifecycle: LifecycleService, control: ControlService, onOtherAccount: (trainer: string) => void): HostRequests[];
/** Receives the requests of one kind. Each request goes to one host of the job, or to all, as the kind says. */
export declare class HostRequests {
    #private;
    constructor(reception: RequestConnection, kind: RequestKind);
    /** Receives no more requests, refuses waiting ones with BUSY, and waits for those in work. */
    close(): Promise<void>;
}
export {};
//# sourceMappingURL=host-requests.d.ts.map