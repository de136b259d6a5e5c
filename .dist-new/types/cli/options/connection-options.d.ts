import { type Command } from "commander";
import type { ConnectionOverrides } from "../../client/wire/broker-settings.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { OutputFlags } from "../output/output.ts";
/** Flags that say how to reach the broker; each is undefined unless given. */
export interface ConnectionFlags {
    readonly url?: string;
    readonly user?: string;
    readonly password?: string;
    readonly token?: string;
    readonly creds?: string;
    readonly nkey?: string;
    readonly tlscert?: string;
    readonly tlskey?: string;
    readonly tlsca?: string;
    readonly context?: string;
}
/** Flags of a command that works with a job. */
export interface JobFlags extends ConnectionFlags {
    readonly job: string;
    /** Longest wait in milliseconds; each command says for what. */
    readonly timeout: number;
}
/** Flags of a command that speaks to hosts as a trainer does. */
export interface TrainerFlags extends JobFlags {
    readonly trainer?: string;
}
/** Adds the flags that say how to reach the broker. */
export declare function addConnectionOptions(command: Command): Command;
/** Returns the flags that are given under the names of the client's settings. */
export declare function toOverrides(flags: ConnectionFlags): ConnectionOverrides;
/** Adds `--job`. */
export declare function addJobOption(command: Command): Command;
/** Adds the flags of a command that works with a job; `timeoutMs` is the default of `--timeout`. */
export declare function addJobOptions(command: Command, timeoutMs: number, shown?: string): Command;
/** Adds `--timeout`, with a default, which help shows as `shown`. */
export declare function addTimeoutOption(command: Command, timeoutMs: number, shown?: string): Command;
/** The default of `--timeout` where values are transferred, for help: see {@link givenTimeout}. */
export declare const WHILE_IN_PROGRESS = "as long as values move";
/**
 * Returns the timeout of a command that transfers values, if its user has given one, for a whole call. Without one a
 * call may last as long as it makes progress, however slow the link is.
 */
export declare function givenTimeout(command: Command): {
    readonly timeoutMs?: number;
};
/** Adds `--trainer`, the id that the broker's permissions may be bound to. */
export declare function addTrainerOption(command: Command): Command;
/** Adds the flags for the output of a command. */
export declare function addOutputOptions(command: Command): Command;
/** Flags of a command that asks the hosts of a job and prints the answer. */
export interface AskingFlags extends TrainerFlags, OutputFlags {
}
/** Adds the flags of a command that asks hosts; `timeoutMs` is the default of `--timeout`. */
export declare function addAskingOptions(command: Command, timeoutMs: number, shown?: string): Command;
/** Credentials of the connections on which a host answers trainers; each is undefined unless given. */
export interface AnswerFlags {
    readonly answerCreds?: string;
    readonly answerNkey?: string;
    readonly answerUser?: string;
    readonly answerPassword?: string;
}
/** Adds the credentials of a host's second user, which answers trainers. */
export declare function addAnswerOptions(command: Command): Command;
/** Returns the connection settings of the user that answers trainers; undefined if none is given. */
export declare function toAnswerConnection(flags: AnswerFlags, { servers, tls, timeoutMs }: ConnectionSettings): ConnectionSettings | undefined;
//# sourceMappingURL=connection-options.d.ts.map