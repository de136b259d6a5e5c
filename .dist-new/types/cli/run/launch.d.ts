import type { SavedModel } from "../../client/client.ts";
import { type PserverError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { type ConnectionFlags } from "../options/connection-options.ts";
import type { Output } from "../output/output.ts";
import { type RunFlags } from "./run-flags.ts";
import { type TrainerCommand } from "./trainer-command.ts";
import { TrainerOutput } from "./trainer-output.ts";
/** How trainers reach the broker. */
export interface ServerAccess {
    /** Addresses without credentials, with commas between them. */
    readonly url: string;
    /** `NATS_…` variables of the credentials and certificates. */
    readonly credentials: Readonly<Record<string, string>>;
}
/** Finds the access to the broker that flags, environment or a NATS context name. */
export declare function accessOf(flags: ConnectionFlags, environment: Readonly<Record<string, string | undefined>>): ServerAccess;
/** Variables for a trainer. One that is undefined is removed from what the trainer inherits. */
export type Variables = Readonly<Record<string, string | undefined>>;
/** The place of a trainer among all of its run. */
export interface TrainerPlace {
    readonly rank: number;
    /** Its number among the trainers of its machine. */
    readonly localRank: number;
    /** How many trainers its machine has. */
    readonly localCount: number;
    /** The number of its machine. */
    readonly machine: number;
    /** How many machines have trainers. */
    readonly machineCount: number;
}
/** Returns the places of the trainers of ranks 0, 1, …, each given by the name of its machine. */
export declare function placesOn(machines: readonly string[]): TrainerPlace[];
/**
 * Returns the variables of all trainers of a run, under their present names and Legion's; `--env` may override
 * them.
 */
export declare function sharedVariables(flags: RunFlags, command: TrainerCommand, url: string): Record<string, string>;
/** Returns the id of the trainer of a rank. */
export declare function trainerId({ trainer }: RunFlags, rank: number): string;
/** Returns the additional variables of one trainer, and at last those of `--env`, which override all. */
export declare function ownVariables(flags: RunFlags, { rank, localRank }: TrainerPlace, torch: Variables): Variables;
/**
 * Returns variables for a trainer that neither the user's environment on its machine nor `--env` sets: one
 * thread for arithmetic if it shares the machine with others, as torchrun does. Else each of them would start a
 * thread for every core.
 */
export declare function threadDefaults({ env }: RunFlags, place: TrainerPlace): Variables;
/** The server of a run: started for it, or running before. */
export interface JobServer {
    readonly access: ServerAccess;
    /** Where the run keeps its files. */
    readonly directory: string;
    /** Settles with the reason when a server that was started for the run has ended for good. */
    readonly failed: Promise<PserverError>;
    /** Has a host write the model. @throws as `Client.saveModel` does. */
    save(path: string): Promise<SavedModel>;
    /** Stops a server that was started for the run; with `isDone` its data is removed, unless `--store` names it. */
    stop(isDone: boolean): Promise<void>;
}
/** Dependencies of a launcher. */
export interface Launch {
    readonly context: CliContext;
    readonly output: Output;
    readonly flags: RunFlags;
    readonly command: TrainerCommand;
    readonly server: JobServer;
}
/** A way to start trainers. */
export interface Launcher {
    /** Whether the command must exist on this machine, because trainers run here or on a shared file system. */
    readonly isCommandHere: boolean;
    /** Checks the flags before anything starts. @throws BAD_VALUE for a flag it lacks, or a missing program. */
    check(context: CliContext, flags: RunFlags): void;
    /** Describes what it would start. */
    describe(context: CliContext, flags: RunFlags, command: TrainerCommand): Promise<string>;
    /** Starts the trainers. @throws what the first start failed for. */
    start(launch: Launch): Promise<RunningTrainers>;
}
/** Returns the variables of every trainer, credentials included; `--env` may override them. */
export declare function trainerVariables({ flags, command, server }: Launch): Record<string, string>;
/** Returns the environment of this process without addresses and credentials of a broker. */
export declare function inheritedEnvironment({ context }: Launch): CliContext["environment"];
/** Says, once for all trainers, that some share a machine and therefore have one thread each. */
export declare function tellThreads({ output, flags }: Launch, places: readonly TrainerPlace[]): void;
/** Makes the printer of the output of trainers. */
export declare function trainerOutput({ context, output, flags }: Launch): TrainerOutput;
/** Quotes a word for any POSIX shell. It may hold anything but NUL. */
export declare function shellWord(word: string): string;
/** Writes words as one command line. */
export declare function shellCommand(words: readonly string[]): string;
/** Writes lines of a script that set and export variables, and unset those that are undefined. */
export declare function exportLines(variables: Readonly<Record<string, string | undefined>>): string[];
/** How a trainer ended for good. */
export interface TrainerEnd {
    readonly rank: number;
    readonly trainer: string;
    readonly exitCode: number;
    readonly restarts: number;
}
/** Trainers that were started, on any machine. */
export interface RunningTrainers {
    /**
     * Settles when all have ended with exit code 0, or when the first has failed for good. Rejects with the
     * error that kept them from running.
     */
    readonly ended: Promise<void>;
    /** Returns the trainers that have ended by themselves so far, not because they were stopped. */
    ends(): readonly TrainerEnd[];
    /** Stops the trainers that still run; settles when none is left. */
    stop(): Promise<void>;
}
/** The address at which others reach this machine, and the one to listen on for it. */
export interface ReachableAddress {
    readonly advertised: string;
    readonly listen: string;
}
/**
 * Finds the address for other machines: the one given, else this machine's name if it resolves to more than
 * loopback, else its first address.
 * @throws BAD_VALUE if there is none, or the given one is neither a name nor an address.
 */
export declare function reachableAddress(given: string | undefined): Promise<ReachableAddress>;
/** Whether an address means the machine on which it is used. */
export declare function isLoopback(address: string): boolean;
/** Where torch.distributed's trainers meet: the machine of rank 0, and a port that is free there. */
export interface Rendezvous {
    readonly address: string;
    readonly port: number;
}
/**
 * A shell program that sets `port` to a free one of this machine. It knows which are in use where there is a
 * Linux kernel to tell. Like the guard it has nothing in it that a login shell could stumble over.
 */
export declare const FREE_PORT_PROGRAM: string;
/**
 * Checks that the flags leave all trainers what torch.distributed needs.
 * @throws BAD_VALUE for flags that `--torch-env` excludes.
 */
export declare function checkTorchFlags({ torchEnv, devices, maxSimultaneous, instances }: RunFlags): void;
/**
 * Finds a free port of this machine.
 * @throws IO if this machine lets nobody listen on loopback.
 */
export declare function freePort(): Promise<number>;
/**
 * Returns the variables that torch.distributed and accelerate read, with the values that torchrun would give
 * them.
 */
export declare function torchVariables({ rank, localRank, localCount, machine, machineCount }: TrainerPlace, { instances }: RunFlags, { address, port }: Rendezvous): Variables;
/**
 * Unsets the variables of a torchrun around the launcher: trainers would expect its store at the address of
 * ours.
 */
export declare const OUTER_TORCHRUN: Variables;
//# sourceMappingURL=launch.d.ts.map