import { type NatsConnection } from "@nats-io/transport-node";
import { type ParameterInfo, type StatusReply, type StatusRequest } from "../../protocol/messages/lifecycle-messages.ts";
import { type BlockVersions } from "../../protocol/messages/reads.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import { type CallOptions, Calls } from "../calls/calls.ts";
import { type ConnectionOverrides, type Environment } from "../wire/broker-settings.ts";
import { Requests } from "../wire/wire.ts";
import { type Participants } from "./participants.ts";
/**
 * Roles that the broker's permissions can allow a user. A host needs `store` and `answers`, of one user or of
 * two.
 */
export declare const ROLES: readonly ["trainer", "observer", "store", "answers"];
/** One of the roles. */
export type Role = (typeof ROLES)[number];
/** What a user may do. */
export interface Permissions {
    readonly roles: ReadonlySet<Role>;
    /** What the broker refuses of each role. */
    readonly refused: Readonly<Record<Role, readonly string[]>>;
}
/** Versions of parameters, as far as the hosts know them. */
export interface KnownVersions {
    /** By name. A parameter without an entry is not initialized, or its versions are not known. */
    readonly versions: ReadonlyMap<string, BlockVersions>;
    /** Shards whose owners did not answer. */
    readonly silentShards: readonly number[];
    /** Why the hosts could not be asked; absent if they could. */
    readonly refusal?: string;
}
/** The broker that an admin is connected to. */
export interface ConnectedBroker {
    readonly address: string;
    readonly roundTripMs: number;
    /** Version of nats-server; "" if the broker does not say. */
    readonly version: string;
    /** The largest message that it takes; 0 if it does not say. */
    readonly payloadBytesMax: number;
}
/** Dependencies of {@link JobAdmin}. */
interface JobAdminDeps {
    /** The connection, which the admin closes. */
    readonly connection: NatsConnection;
    readonly requests: Pick<Requests, "ask">;
    readonly calls: Calls;
    readonly subjects: JobSubjects;
    /** The id to ask under; permissions of the broker may be bound to it. */
    readonly trainer: string;
    /** Options of each call. */
    readonly callOptions: CallOptions;
}
/**
 * Asks the hosts of a job what needs no session: the asker does not join the job. Made by `openAdmin`. Each
 * call ends after the `timeoutMs` given there, with NO_HOST if no host answers.
 */
export declare class JobAdmin {
    #private;
    constructor(deps: JobAdminDeps);
    /** The id under which it asks. */
    get trainer(): string;
    /** Asks for the state of the job, and for parameters: those named, or a page in the order of names. */
    status(request?: StatusRequest): Promise<StatusReply>;
    /** Asks for the state of the job and all its parameters, ready or not, in the order of names. */
    statusAndParameters(): Promise<{
        status: StatusReply;
        parameters: ParameterInfo[];
    }>;
    /**
     * Asks for one parameter, which must be ready.
     * @throws UNKNOWN_PARAMETER, or NOT_INITIALIZED.
     */
    parameter(name: string): Promise<ParameterInfo>;
    /** Asks for hosts, shards and trainers of the job, as one of the hosts sees them. */
    participants(): Promise<Participants>;
    /**
     * Asks for the versions of these parameters' blocks. None is known if the broker does not permit the
     * request, or if the hosts are too old to answer it.
     */
    versions(names: readonly string[]): Promise<KnownVersions>;
    /** Describes the broker, after one round trip to it. */
    broker(): Promise<ConnectedBroker>;
    /** Finds out what the broker permits this user to do in the job; changes nothing in the job. */
    permissions(): Promise<Permissions>;
    /** Closes the connection. */
    close(): Promise<void>;
}
/** Where to connect for the administration of a job. */
export interface AdminConnectionOptions {
    readonly job: string;
    /** Settings that are left out come from the environment. */
    readonly broker: ConnectionOverrides;
    readonly environment: Environment;
    /** Time to reach the broker. */
    readonly connectTimeoutMs: number;
    readonly signal: AbortSignal;
}
/** How to ask the hosts of a job. */
export interface AdminOptions extends AdminConnectionOptions {
    /** The id to ask under; permissions of the broker may be bound to it. */
    readonly trainer: string;
    /** Time for each call. */
    readonly timeoutMs: number;
}
/**
 * Connects to the broker for questions to the hosts of a job, without joining it. The caller closes
 * the admin.
 * @throws NO_BROKER or DENIED if the broker cannot be used; ABORTED.
 */
export declare function openAdmin(options: AdminOptions): Promise<JobAdmin>;
/**
 * Opens a connection such as hosts of the job have, for the JetStream API: streams, their messages and their
 * removal. The caller closes it.
 * @param name appears in the inbox and in the broker's list of connections.
 * @throws as {@link openAdmin}.
 */
export declare function openStoreConnection(options: AdminConnectionOptions, name: string): Promise<NatsConnection>;
export {};
//# sourceMappingURL=job-admin.d.ts.map