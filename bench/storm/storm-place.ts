import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync, openSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { startTestBroker, type TestBroker } from "../../test/support/broker.ts";
import { findPython, TREE } from "../../test/support/find-python.ts";
import { signalProcess } from "../../test/support/signals.ts";
import { SlowLink } from "../../test/support/slow-link.ts";
import { type LearnerLog, parseLearnerLog } from "./learner-log.ts";
import type { TimelineEvent } from "./timeline.ts";

/** The job of a storm. */
export const JOB = "storm";

/** What the learners train, and how. */
export interface LearnerWork {
  readonly fragments: number;
  readonly tensors: number;
  readonly shape: readonly number[];
  readonly syncEvery: number;
  readonly encoding: "int8" | "e3m0" | "bfloat16" | null;
  /** Seconds that an inner step of the fastest learner takes; of the slowest a quarter more. */
  readonly stepTime: number;
  /** With how many rounds of each fragment a learner ends; by default it goes on. */
  readonly rounds?: number;
}

/** What a place has. */
export interface PlaceOptions {
  readonly learners: number;
  readonly hosts: number;
  readonly work: LearnerWork;
  /** Options of `pserver host` for the new job. */
  readonly hostFlags: readonly string[];
  readonly seed: number;
  /** What the link of each learner carries in each direction, in bytes a second; unlimited by default. */
  readonly links?: readonly number[];
}

/** How much longer the steps of the slowest learner take. */
const SLOWEST = 0.25;
/** Seconds after which a call of a learner in the background is made again. */
const CALL_TIMEOUT = 60;
/** How long a process that was asked to end may take. */
const END_MS = 30_000;

/** A learner: the processes that have trained as this one, one after the other, over a link of its own. */
export interface StormLearner {
  readonly number: number;
  readonly link: SlowLink;
  trainer: string;
  life: number;
  child: ChildProcess | undefined;
}

/** Whether a process has ended. */
export function hasEnded(child: ChildProcess | undefined): boolean {
  return child === undefined || child.exitCode !== null || child.signalCode !== null;
}

/** Processes to be ended when this one ends. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A broker, hosts of one `diloco` job, and learners in processes of their own. It notes all that is done to them. */
export class StormPlace {
  readonly broker: TestBroker;
  readonly learners: readonly StormLearner[];
  readonly timeline: TimelineEvent[] = [];
  /** Processes that have ended by themselves before they were done, and how. */
  readonly ended: string[] = [];
  readonly #options: PlaceOptions;
  readonly #python: string;
  readonly #directory: string;
  readonly #hosts: (ChildProcess | undefined)[] = [];
  readonly #trainers: Set<string> = new Set();

  private constructor(
    options: PlaceOptions,
    parts: { broker: TestBroker; links: readonly SlowLink[]; python: string; directory: string },
  ) {
    this.#options = options;
    this.broker = parts.broker;
    this.#python = parts.python;
    this.#directory = parts.directory;
    this.learners = parts.links.map((link, number) => {
      return { number, link, trainer: `learner-${number}`, life: 0, child: undefined };
    });
  }

  /** Starts all of it, and waits until every learner has the job's values. The caller closes it. */
  static async open(options: PlaceOptions, signal: AbortSignal): Promise<StormPlace> {
    const python = await findPython("numpy");
    const directory = await mkdtemp(join(tmpdir(), "pserver-storm-"));
    const broker = await startTestBroker();
    const links = await Promise.all(
      Array.from({ length: options.learners }, (_, number) =>
        SlowLink.open(broker.port, options.links?.[number] ?? Number.POSITIVE_INFINITY),
      ),
    );
    const place = new StormPlace(options, { broker, links, python, directory });
    try {
      for (let host = 0; host < options.hosts; host++) await place.startHost(host);
      // The first one gives the job its values.
      for (const { number } of place.learners) {
        place.startLearner(number);
        if (number === 0) await place.until(() => place.hasBegun(number), signal);
      }
      await place.until(() => place.learners.every(({ number }) => place.hasBegun(number)), signal);
      return place;
    } catch (error) {
      await place.close();
      throw error;
    }
  }

  /** Whether the present process of a learner has the job's values. */
  hasBegun(number: number): boolean {
    const { trainer, life } = this.#learner(number);
    const { lines } = this.#logOf(trainer);
    return lines.some((line) => line.event === "adopted" && line.life === life);
  }

  /** What all learners have written so far. */
  logs(): LearnerLog[] {
    return [...this.#trainers].map((trainer) => this.#logOf(trainer));
  }

  /** Starts a host, and waits until it serves. */
  async startHost(host: number): Promise<void> {
    const { hostFlags } = this.#options;
    const args = ["host", "--url", this.broker.url, "--job", JOB, "--id", `host-${host}`];
    const flags = [...args, "--shards", "4", "--sync", "diloco", ...hostFlags, "--json"];
    const program = join(packageRoot(), "dist", "pserver.js");
    const errors = openSync(this.#errorPath(`host-${host}`), "a");
    const child = spawn(process.execPath, [program, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
      env: variables(),
    });
    child.stderr.pipe(createWriteStream("", { fd: errors }));
    this.#adopt(child, `host-${host}`, () => this.#hosts[host] === child);
    this.#hosts[host] = child;
    this.timeline.push({ timeMs: Date.now(), what: "host started", host });
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", () => resolve());
      child.once("exit", () => {
        reject(new Error(`host-${host} ended before it served; ${this.#told(`host-${host}`)}`));
      });
    });
  }

  /** Ends a host as a crash does. */
  async killHost(host: number): Promise<void> {
    const child = this.#hosts[host];
    this.#hosts[host] = undefined;
    this.timeline.push({ timeMs: Date.now(), what: "host killed", host });
    await endOf(child, "SIGKILL");
  }

  /** Ends the broker as a crash does. */
  async killBroker(): Promise<void> {
    this.timeline.push({ timeMs: Date.now(), what: "broker killed" });
    await this.broker.kill();
  }

  /** Starts the broker again, with what it has stored. */
  async startBroker(): Promise<void> {
    this.timeline.push({ timeMs: Date.now(), what: "broker started" });
    await this.broker.start();
  }

  /** Starts a learner, again if it has ended; `newId`: as one that the job does not know. */
  startLearner(number: number, newId = false): void {
    const learner = this.#learner(number);
    if (newId) learner.trainer = `learner-${number}-${learner.life}`;
    learner.life += 1;
    const { trainer, life, link } = learner;
    this.#trainers.add(trainer);
    const { work, learners, seed } = this.#options;
    const settings = {
      ...{ url: link.url, job: JOB, trainer, log: this.#logPath(trainer), life },
      ...{ ...work, seed: 1_000 * seed + number, timeout: CALL_TIMEOUT },
      stepTime: work.stepTime * (1 + (SLOWEST * number) / Math.max(1, learners - 1)),
    };
    const program = join(packageRoot(), "bench/python/storm_learner.py");
    const child = spawn(this.#python, [program, JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", openSync(this.#errorPath(trainer), "a")],
      env: { ...variables(), PYTHONPATH: TREE, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" },
    });
    learner.child = child;
    this.#adopt(child, trainer, () => learner.child === child);
    this.#note("started", learner);
  }

  /** Ends a learner as a crash does. */
  async killLearner(number: number): Promise<void> {
    const learner = this.#learner(number);
    const { child } = learner;
    learner.child = undefined;
    this.#note("killed", learner);
    await endOf(child, "SIGKILL");
  }

  /** Has a learner do nothing, with its connections open. */
  stopLearner(number: number): void {
    const learner = this.#learner(number);
    signalProcess(learner.child?.pid, "SIGSTOP");
    this.#note("stopped", learner);
  }

  continueLearner(number: number): void {
    const learner = this.#learner(number);
    signalProcess(learner.child?.pid, "SIGCONT");
    this.#note("continued", learner);
  }

  /** Has nothing pass between a learner and the broker, and nothing be closed. */
  cutLearner(number: number): void {
    const learner = this.#learner(number);
    learner.link.cut();
    this.#note("cut", learner);
  }

  joinLearner(number: number): void {
    const learner = this.#learner(number);
    learner.link.join();
    this.#note("joined", learner);
  }

  /** Waits until a condition holds. @throws what has ended by itself; the reason of the signal. */
  async until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    while (!holds()) {
      signal.throwIfAborted();
      if (this.ended.length > 0) throw new Error(this.ended.join("\n"));
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Has all learners end in order, so that nothing is added to the journals. */
  async endLearners(): Promise<void> {
    const children = this.learners.map((learner) => {
      const { child } = learner;
      learner.child = undefined;
      return child;
    });
    await Promise.all(children.map((child) => endOf(child, "SIGTERM")));
  }

  /** Ends everything, and removes the data. */
  async close(): Promise<void> {
    await Promise.all(
      this.learners.map(async (learner) => {
        const { child } = learner;
        learner.child = undefined;
        await endOf(child, "SIGKILL");
        learner.link.close();
      }),
    );
    const hosts = this.#hosts.splice(0);
    await Promise.all(hosts.map((child) => endOf(child, "SIGKILL")));
    await this.broker.remove();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #learner(number: number): StormLearner {
    const learner = this.learners[number];
    if (learner === undefined) throw new Error(`no learner ${number}`);
    return learner;
  }

  #note(
    what: Extract<TimelineEvent, { learner: number }>["what"],
    { number, trainer }: StormLearner,
  ): void {
    this.timeline.push({ timeMs: Date.now(), what, learner: number, trainer });
  }

  /** Notes an end that nobody has asked for: then the process is still the present one, and not done. */
  #adopt(child: ChildProcess, name: string, isPresent: () => boolean): void {
    running.add(child);
    child.once("exit", (code, signal) => {
      running.delete(child);
      if (code !== 0 && isPresent())
        this.ended.push(`${name} ended: ${signal ?? code}; ${this.#told(name)}`);
    });
  }

  #told(name: string): string {
    return readFileSync(this.#errorPath(name), "utf8").slice(-2_000);
  }

  #logOf(trainer: string): LearnerLog {
    const path = this.#logPath(trainer);
    return parseLearnerLog(trainer, existsSync(path) ? readFileSync(path, "utf8") : "");
  }

  #logPath(trainer: string): string {
    return join(this.#directory, `${trainer}.jsonl`);
  }

  #errorPath(name: string): string {
    return join(this.#directory, `${name}.err`);
  }
}

/** Pause between two looks at the logs. */
const POLL_MS = 100;

/** How long a broker on a busy machine may take to answer. */
const BROKER_TIMEOUT = "60s";

/** Those of this process, without any that lead to another server. */
function variables(): NodeJS.ProcessEnv {
  const outside = /^(?:PSERVER_|NATS_|PYTHON)/;
  const own = Object.entries(process.env).filter(([name]) => !outside.test(name));
  return { ...Object.fromEntries(own), NATS_TIMEOUT: BROKER_TIMEOUT };
}

/** Sends a signal, and waits for the end of a process; one that does not end in time is killed. */
async function endOf(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || hasEnded(child)) return;
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), END_MS);
  await exited;
  clearTimeout(timer);
}
