import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import type { AgentReply } from "./agent.ts";

/** Commands of an agent by name; each takes one plain argument. */
export type Commands = Readonly<Record<string, (args: never) => Promise<unknown>>>;

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

const CALL_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;

/** A program of `bench/programs` in a process of its own, and the calls to it. */
export class AgentProcess<Known extends Commands> {
  readonly pid: number;
  readonly #program: string;
  readonly #child: ChildProcess;
  readonly #waiting: Map<number, Waiting> = new Map();
  readonly #exited: Promise<void>;
  #calls = 0;

  private constructor(program: string, child: ChildProcess) {
    this.#program = program;
    this.#child = child;
    this.pid = child.pid ?? 0;
    child.on("message", (reply: AgentReply) => this.#settle(reply));
    this.#exited = new Promise((resolve) => {
      const end = (how: string): void => {
        for (const { reject } of this.#waiting.values()) reject(new Error(`${program} ${how}`));
        this.#waiting.clear();
        resolve();
      };
      child.once("error", (error) => end(`failed: ${error.message}`));
      child.once("exit", (code, signal) => end(`ended: ${signal ?? code}`));
    });
  }

  /** Starts a program; with `profileDirectory` it writes a CPU profile there at its end. */
  static start<Known extends Commands>(
    program: string,
    profileDirectory: string | undefined,
  ): AgentProcess<Known> {
    const profile = ["--cpu-prof", "--cpu-prof-dir", profileDirectory ?? ""];
    const child = fork(join(import.meta.dirname, "programs", `${program}.js`), [], {
      execArgv: profileDirectory === undefined ? [] : profile,
      serialization: "advanced",
    });
    return new AgentProcess<Known>(program, child);
  }

  /** Runs a command in the agent. @throws what the command threw, or that the agent has ended. */
  async call<Name extends keyof Known & string>(
    command: Name,
    args: Parameters<Known[Name]>[0],
    timeoutMs: number = CALL_TIMEOUT_MS,
  ): Promise<Awaited<ReturnType<Known[Name]>>> {
    this.#calls += 1;
    const id = this.#calls;
    let timer: NodeJS.Timeout | undefined;
    try {
      const result = await new Promise<unknown>((resolve, reject) => {
        const what = `${this.#program} ${command}`;
        timer = setTimeout(
          () => reject(new Error(`${what}: no answer in ${timeoutMs} ms`)),
          timeoutMs,
        );
        this.#waiting.set(id, { resolve, reject });
        this.#child.send({ id, command, args }, (error) => {
          if (error !== null) reject(error);
        });
      });
      return result as Awaited<ReturnType<Known[Name]>>;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** Asks the process to end, then kills it. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  #settle(reply: AgentReply): void {
    const waiting = this.#waiting.get(reply.id);
    if ("error" in reply) waiting?.reject(new Error(`${this.#program}: ${reply.error}`));
    else waiting?.resolve(reply.result);
  }
}
