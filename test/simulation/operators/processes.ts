import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { vi } from "vitest";
import type { PserverError } from "../../../src/protocol/errors.ts";
import { ensureError } from "../../../src/protocol/errors.ts";
import { Random } from "../random.ts";
import { promise } from "../violation.ts";
import type { BrokerMessage, ClientMessage } from "./simulated-broker.ts";
import { type Fate, SimulatedConnection, type Tampering } from "./simulated-connection.ts";
import { ProcessFiles } from "./simulated-files.ts";

/** The real one: a turn of the event loop, in which all promises that can be settled are. */
const { setImmediate: soon } = globalThis;
const turn = (): Promise<void> => new Promise((resolve) => soon(resolve));

/** Steps after which a schedule hangs. */
const STEPS_MAX = 60_000;

/** Shares of the messages of a process that fails: the fates of one message, and of its process. */
const CRASHES = 0.003;
const LOST = 0.004;
const LATE = 0.004;
/** Share of the steps after which a process sleeps, and of the decisive ones before which it does; and for how long. */
const SLEEPS = 0.02;
const HESITATES = 0.12;
const SLEEP_STEPS = 400;
/** Share of the sleeps that last until nobody else has anything to do. */
const LONG_SLEEPS = 0.4;

/** A process: its connection, its files, and what it is doing. */
export class Process {
  readonly name: string;
  readonly link: SimulatedConnection;
  readonly files: ProcessFiles;
  isBusy = false;
  /** The step before which it does nothing. */
  sleepsUntil = 0;
  /** What it has ended with. */
  result: unknown;
  error: PserverError | undefined;

  constructor(name: string, link: SimulatedConnection, files: ProcessFiles) {
    this.name = name;
    this.link = link;
    this.files = files;
  }

  /** Whether it waits for the broker, or for a file. */
  get isWaiting(): boolean {
    return this.link.waiting > 0 || this.files.waiting > 0;
  }

  get connection(): NatsConnection {
    return this.link.connection;
  }

  /** Does work until it ends; a process does one thing at a time. */
  do(work: () => Promise<unknown>): void {
    this.isBusy = true;
    const ended = (): void => {
      this.isBusy = false;
    };
    this.files.run(work).then(
      (result) => {
        this.result = result;
        ended();
      },
      (error: unknown) => {
        this.error = ensureError(error);
        ended();
      },
    );
  }
}

/** Takes a message of a process, whose name is given. */
export type TakeFrom = (process: string, message: ClientMessage) => BrokerMessage[];

/**
 * Runs processes one broker message or one operation on a file at a time, as a seed decides: which process goes on, which
 * sleeps, which message is lost, comes late or is not answered, and which process crashes before or after its message
 * has had its effect, or within its operation.
 */
export class Processes {
  readonly random: Random;
  readonly #take: TakeFrom;
  #all: Process[] = [];
  #late: (() => void)[] = [];
  #sent = 0;
  #step = 0;
  /** Whether processes fail. */
  isStormy = true;

  constructor(random: Random, take: TakeFrom) {
    this.random = random;
    this.#take = take;
  }

  /** Number of messages and operations on files that were performed. */
  get step(): number {
    return this.#step;
  }

  /** Whether a process does something, and does not sleep. */
  isActive({ isBusy, sleepsUntil, link }: Process): boolean {
    return isBusy && !link.isDead && sleepsUntil <= this.#step;
  }

  /** Starts a process. */
  start(name: string, tampering: Tampering = {}): Process {
    const onSent = (): void => {
      this.#sent += 1;
    };
    const link = new SimulatedConnection(name, (sent) => this.#take(name, sent), onSent, tampering);
    const process = new Process(name, link, new ProcessFiles(onSent, tampering.isDropped));
    if (this.isStormy && this.random.chance(0.1)) this.#sleep(process);
    this.#all.push(process);
    return process;
  }

  /** A connection all of whose messages are performed at once: for what the schedule does not interrupt. */
  instant(name: string): NatsConnection {
    const link: SimulatedConnection = new SimulatedConnection(
      name,
      (sent) => this.#take(name, sent),
      () => queueMicrotask(() => link.perform("done")),
    );
    return link.connection;
  }

  /** Does one step; false if no process has anything to do. */
  async advance(): Promise<boolean> {
    await this.#settle();
    promise(this.#step < STEPS_MAX, () => `${this.#busy().join(", ")} never ends`);
    if (this.#late.length > 0 && this.random.chance(0.1)) this.#late.shift()?.();
    const able = this.#all.filter(({ isWaiting }) => isWaiting);
    const awake = able.filter(({ sleepsUntil }) => sleepsUntil <= this.#step);
    const next = this.random.pick(awake) ?? this.random.pick(able);
    if (next === undefined) return this.#passTime();
    const isDeciding = next.link.isDeciding || next.files.isDeciding;
    if (this.isStormy && isDeciding && this.random.chance(HESITATES)) {
      this.#sleep(next);
      return true;
    }
    if (this.isStormy && this.random.chance(0.01)) vi.advanceTimersToNextTimer();
    this.#step += 1;
    this.#perform(next);
    return true;
  }

  /** Ends a process where it is. */
  crash(process: Process): void {
    process.link.crash();
    process.files.crash(this.random);
    process.isBusy = false;
    this.#all = this.#all.filter((each) => each !== process);
  }

  /** Performs all messages that were still on their way. */
  flushLate(): void {
    for (const perform of this.#late.splice(0)) perform();
  }

  #busy(): string[] {
    return this.#all.filter(({ isBusy }) => isBusy).map(({ name }) => name);
  }

  #perform(process: Process): void {
    const { link, files } = process;
    const { random } = this;
    const isFile = files.waiting > 0 && (link.waiting === 0 || random.chance(0.5));
    if (!this.isStormy) {
      if (isFile) files.perform();
      else link.perform("done");
      return;
    }
    if (random.chance(CRASHES)) {
      if (!isFile && random.chance(0.5)) link.perform("answer lost");
      this.crash(process);
    } else if (isFile) files.perform();
    else if (random.chance(LATE)) this.#late.push(link.delay());
    else link.perform(random.pickWeighted<Fate>(FATES) ?? "done");
    if (random.chance(SLEEPS)) this.#sleep(process);
  }

  #sleep(process: Process): void {
    const steps = this.random.chance(LONG_SLEEPS) ? STEPS_MAX : this.random.below(SLEEP_STEPS);
    process.sleepsUntil = this.#step + steps;
  }

  /** Nothing is under way: what waits for a time goes on. */
  #passTime(): boolean {
    if (this.#busy().length === 0) return false;
    this.#step += 1;
    for (const { link } of this.#all) link.expire();
    if (vi.getTimerCount() > 0) vi.advanceTimersToNextTimer();
    return true;
  }

  /** Waits until every process waits for the broker, for a time, or for work. */
  async #settle(): Promise<void> {
    let sent: number;
    do {
      sent = this.#sent;
      await turn();
      await turn();
    } while (sent !== this.#sent || process.getActiveResourcesInfo().includes("FSReqPromise"));
  }
}

const FATES: readonly (readonly [number, Fate])[] = [
  [Math.round((1 - LOST) * 1_000), "done"],
  [Math.round(LOST * 500), "request lost"],
  [Math.round(LOST * 500), "answer lost"],
];

/** Runs a schedule with timers that only its steps move, and with jitter of its own. */
export async function withSimulatedTime<Result>(
  seed: number,
  run: () => Promise<Result>,
): Promise<Result> {
  // Apart from the schedule's: how often others ask for a number depends on what ran before.
  const random = new Random(seed);
  const { setTimeout: real } = timers;
  const { random: realRandom } = Math;
  Math.random = () => random.below(2 ** 32) / 2 ** 32;
  const replace = (other: typeof real): void => {
    timers.setTimeout = other;
    // Else modules that have imported it by its name keep the old one.
    syncBuiltinESMExports();
  };
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"],
  });
  replace(<T>(ms = 0, value?: T) => {
    return new Promise<T>((resolve) => setTimeout(() => resolve(value as T), ms));
  });
  try {
    return await run();
  } finally {
    replace(real);
    Math.random = realRandom;
    vi.useRealTimers();
  }
}
