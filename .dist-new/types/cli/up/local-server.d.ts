import { type FoundBroker, findBroker, setUpBroker } from "../../broker/index.ts";
import { type PserverError } from "../../protocol/errors.ts";
import { type CliContext } from "../context.ts";
import { type HostFlags } from "../options/host-options.ts";
import type { Output } from "../output/output.ts";
/** Functions that find and provide brokers. */
declare const BROKERS: {
    findBroker: typeof findBroker;
    setUpBroker: typeof setUpBroker;
};
/**
 * Finds the broker to start. If there is none, a person at a terminal is asked whether to provide one, as
 * `pserver setup` does.
 * @throws as `findBroker` and `setUpBroker` do.
 */
export declare function findProgram(context: CliContext, output: Output, brokers?: typeof BROKERS): Promise<FoundBroker>;
/** Flags of a broker and its hosts on this machine. */
export interface LocalServerFlags extends HostFlags {
    readonly job: string;
    readonly port: number;
    readonly store: string;
    readonly hosts: number;
    readonly durable?: boolean;
    /** Whether clients need no token. */
    readonly noToken?: boolean;
}
/** Options of {@link startLocalServer}. */
export interface LocalServerOptions {
    /** Address to listen on; by default only programs of this machine reach the broker. */
    readonly address?: string;
}
/** A server that is ready, as `pserver up --json` prints it. */
export interface ServerReady {
    readonly url: string;
    readonly job: string;
    readonly hosts: readonly string[];
    readonly store: string;
    readonly modelDirectory: string;
    readonly broker: {
        readonly pid: number;
        readonly version: string;
    };
    /** File with the token that clients need; absent if they need none. */
    readonly tokenFile?: string;
}
/** A broker and hosts that this command has started and keeps running. */
export interface LocalServer {
    readonly ready: ServerReady;
    /** The token that clients need; undefined if they need none. */
    readonly token: string | undefined;
    /** Settles with the reason when the broker or every host is gone for good. */
    readonly failed: Promise<PserverError>;
    /** Stops the hosts in order, and last the broker. */
    stop(): Promise<void>;
}
/**
 * Starts a broker and hosts; settles when all of them serve.
 * @throws the error that kept it from starting; ABORTED if it is interrupted before it serves.
 */
export declare function startLocalServer(context: CliContext, output: Output, flags: LocalServerFlags, options?: LocalServerOptions): Promise<LocalServer>;
/** Returns the environment without the address and credentials of another broker. */
export declare function withoutConnection(environment: CliContext["environment"]): CliContext["environment"];
export {};
//# sourceMappingURL=local-server.d.ts.map