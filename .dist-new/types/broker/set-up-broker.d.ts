import { type FoundBroker } from "./find-broker.ts";
/**
 * Sends a signal to a process and to all its descendants, whatever process groups they have made. The process
 * itself gets it first, so that it does not start another one in place of one that ends. Without `/proc` only
 * the process gets it.
 */
export declare function signalTree(pid: number, signal: NodeJS.Signals): Promise<void>;
/** Options of {@link setUpBroker}. */
export interface SetUpOptions {
    readonly environment: Readonly<Record<string, string | undefined>>;
    /** Receives progress, line by line. */
    readonly onMessage: (text: string) => void;
    readonly signal: AbortSignal;
    /** Directory of the package, this one by default. */
    readonly root?: string;
}
/**
 * Returns the broker that {@link findBroker} finds. If none is new enough, builds one in the user's directory
 * with Go; where there is no Go, pip fetches a broker, and Python is installed for that if need be.
 * @throws NO_BROKER if that is not possible, naming what to install; the reason of `signal`, which ends
 *   all processes of the installation.
 */
export declare function setUpBroker(options: SetUpOptions): Promise<FoundBroker>;
//# sourceMappingURL=set-up-broker.d.ts.map