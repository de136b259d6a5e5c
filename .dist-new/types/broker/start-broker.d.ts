import { PserverError } from "../protocol/errors.ts";
import { type BrokerConfig } from "./broker-config.ts";
import { type FoundBroker } from "./find-broker.ts";
/** How a broker ended: with an exit code, or by a signal. */
export interface BrokerExit {
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
}
/** A nats-server process that was started, and the last lines of its log. */
export declare class BrokerProcess {
    #private;
    readonly pid: number;
    readonly exited: Promise<BrokerExit>;
    private constructor();
    /**
     * Starts the program in a process group of its own, so that Ctrl-C reaches only this process, and the
     * broker can be stopped after everything that depends on it.
     * @throws NO_BROKER if the program cannot be run.
     */
    static spawn(program: string, args: readonly string[], afterExit: () => Promise<void>, onLog: (line: string) => void): Promise<BrokerProcess>;
    get hasExited(): boolean;
    /** Returns the last lines of the log, oldest first. */
    lastLines(): readonly string[];
    /** Sends SIGTERM, and after 15 s SIGKILL; settles when the process has ended. */
    stop(): Promise<void>;
    /** Sends SIGKILL; settles when the process has ended. */
    kill(): Promise<void>;
    /** Sends a signal unless the process has ended. */
    signal(signal: NodeJS.Signals): void;
}
/** A process that listens on a port of this machine. */
export interface Listener {
    readonly pid: number;
    /** Name of its program as in `/proc`: at most 15 bytes. */
    readonly name: string;
}
/**
 * Finds the process that listens on a TCP port; undefined if the system does not say: without `/proc`, or if
 * the process belongs to another user.
 */
export declare function findListener(port: number): Promise<Listener | undefined>;
/**
 * Makes the error for a broker that did not start, from the end of its log.
 * @param what what happened, such as "ended before it was ready".
 * @returns ADDRESS_IN_USE with the address and, if known, the process that listens there; else
 *   NO_BROKER with the broker's own message.
 */
export declare function failedStart(what: string, log: readonly string[]): Promise<PserverError>;
/**
 * Detects in a broker's log a store that cannot be written until the broker is restarted. If a full disk
 * cut off the first record of a file, nats-server 2.12 appends nothing to it, even with free space, and
 * logs "no message cache" for every record. At its next start it drops the incomplete record.
 */
export declare class StuckStore {
    #private;
    /** Notes a line of the log; returns whether it reports a record refused for this reason. */
    isReportedBy(line: string): boolean;
}
/** Options of {@link startBroker}. */
export interface BrokerOptions extends BrokerConfig {
    /** 0, the default, selects a free port. */
    readonly port?: number;
    /** Address to listen on; `127.0.0.1` by default. */
    readonly host?: string;
    /** The program; by default the one that {@link findBroker} finds. */
    readonly program?: FoundBroker;
    /** Time for recovering the store and opening the port; 60 s by default. */
    readonly startTimeoutMs?: number;
    /** Receives each line of the broker's log. */
    readonly onLog?: (line: string) => void;
    /** Called for each record refused because a full disk has made the store unwritable until a restart. */
    readonly onStoreStuck?: () => void;
    /** Aborts the start; without effect afterwards. */
    readonly signal?: AbortSignal;
}
/** A broker that this process has started and that accepts clients. */
export interface Broker {
    /** Such as `nats://127.0.0.1:4222`. */
    readonly url: string;
    readonly port: number;
    readonly pid: number;
    /** The store directory as an absolute path. */
    readonly storeDir: string;
    /** Such as `2.12.15`. */
    readonly version: string;
    /** Settles when the process has ended and its store is unlocked; never rejects. */
    readonly exited: Promise<BrokerExit>;
    /** Stops the broker, with SIGKILL if that takes more than 15 s, and waits for its end. */
    stop(): Promise<void>;
    /** Ends the broker with SIGKILL, like a crash, and waits for its end. */
    kill(): Promise<void>;
}
/**
 * Starts a broker with JetStream on a store directory that nobody else uses, and settles when it
 * accepts clients. Its log is in `broker.log` of that directory. To restart it on the same data, pass the same `storeDir` and `port`.
 *
 * The broker ends with the process or worker thread that started it: on exit it is sent SIGTERM, and if
 * `setpriv` is installed (as on Debian) the kernel sends it even after SIGKILL. Without `setpriv` a broker
 * may be left running; it keeps the store locked, and the next start names its pid.
 * @throws NO_BROKER if there is no program, or it ended or was not ready in time; the message
 *   ends with the reason from its log.
 * @throws ADDRESS_IN_USE if another process listens on the port.
 * @throws BROKER_TOO_OLD, STORE_IN_USE, BAD_PATH, BAD_VALUE, NO_JETSTREAM, IO, DISK_FULL;
 *   ABORTED by `signal`.
 */
export declare function startBroker(options: BrokerOptions): Promise<Broker>;
//# sourceMappingURL=start-broker.d.ts.map