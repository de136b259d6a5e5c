import type { Broker } from "../../broker/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { type Pause } from "../supervise.ts";
/** Dependencies of {@link BrokerKeeper}. */
export interface BrokerKeeperOptions {
    /** Starts the broker: the first time with no port, then on the port that it had. */
    readonly start: (port: number | undefined, onStoreStuck: () => void) => Promise<Broker>;
    readonly onMessage: (text: string) => void;
    readonly pause?: Pause;
}
/**
 * Keeps a broker running. It is started again, on the same port and store, if it ends by itself, and if a
 * full disk has left it unable to write and space is free again.
 */
export declare class BrokerKeeper {
    #private;
    /** Settles with the reason once the broker has ended and cannot be started again. */
    readonly failed: Promise<PserverError>;
    private constructor();
    /** @throws as `options.start` does: the first start is not repeated. */
    static start(options: BrokerKeeperOptions): Promise<BrokerKeeper>;
    /** The broker that runs, or that ran last. */
    get broker(): Broker;
    /** Stops the broker in order; it is not started again. */
    stop(): Promise<void>;
}
/** A host that has been started, here or in a process of its own. */
export interface StartedHost extends RunningHost {
    /** Settles with its id once it serves; rejects with the error that kept it from starting. */
    readonly ready: Promise<string>;
}
/** Dependencies of {@link KeptHost}. */
export interface KeptHostOptions {
    /** For messages. */
    readonly name: string;
    readonly start: () => StartedHost;
    readonly onMessage: (text: string) => void;
    readonly pause?: Pause;
}
/** Keeps a host running: if it ends by itself it is started again, up to five times in a row. */
export declare class KeptHost implements RunningHost {
    #private;
    /** Settles with the id of the host once it serves. A first start that fails is not repeated. */
    readonly ready: Promise<string>;
    /** Settles when the host has ended for good, with the reason unless it was stopped. */
    readonly stopped: Promise<PserverError | undefined>;
    private constructor();
    /** Starts a host and keeps it running. */
    static start(options: KeptHostOptions): KeptHost;
    /** Stops the host in order; it is not started again. */
    stop(): Promise<void>;
}
/** How to run a host in a process of its own. */
export interface HostProcessOptions {
    /** The program and its first arguments, up to the name of the sub-command. */
    readonly command: readonly [program: string, ...args: string[]];
    /** Arguments of `pserver host`; `--json` is added. */
    readonly args: readonly string[];
    readonly environment: Readonly<Record<string, string | undefined>>;
    /** Gets the host's messages, line by line. */
    readonly onMessage: (text: string) => void;
}
/** A host in a child process. */
export interface HostProcess extends StartedHost {
    readonly pid: number;
}
/**
 * Starts a host in a child process; wait for its `ready`. It has a process group of its own, so that
 * Ctrl-C reaches only this process, which stops its hosts before the broker. If this process dies, the
 * host sees its channel close and stops itself. Its `stop` kills a host that says nothing for 20 s.
 */
export declare function startHostProcess(options: HostProcessOptions): HostProcess;
/** A host that runs in this process or in its own. */
export interface RunningHost {
    /** Settles when it has ended, with the reason unless it was stopped. */
    readonly stopped: Promise<PserverError | undefined>;
    stop(): Promise<void>;
}
/** The hosts that this command has started. */
export declare class RunningHosts {
    #private;
    /** Settles when no host is left, with the reason of the last one. */
    readonly allGone: Promise<PserverError>;
    /** Watches no host yet. `onGone` is called for each host that ends by itself while others still run. */
    constructor(onGone: (name: string, reason: PserverError | undefined) => void);
    /** Watches a host. `name` is for messages. */
    add(name: string, host: RunningHost): void;
    /** Stops every host and waits for all; returns the errors. */
    stop(): Promise<PserverError[]>;
}
//# sourceMappingURL=kept-processes.d.ts.map