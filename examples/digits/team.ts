import type { Child, Message } from "./child.ts";
import type { TrainerProgress } from "./display.ts";

/** Starts the process of a trainer; `onMessage` receives its messages. */
export type StartTrainer = (
  name: string,
  args: readonly string[],
  onMessage: (message: Message) => void,
) => Pick<Child, "running" | "kill" | "stop">;

interface Member {
  readonly child: ReturnType<StartTrainer>;
  state: TrainerProgress["state"];
  /** Updates that the trainer has begun to send. */
  sent: number;
  /** Updates that the trainer knows to be applied. */
  updates: number;
  loss: number | undefined;
  /**
   * Time at which its newest acknowledged round, from pull to push, began; in milliseconds since
   * 1970.
   */
  roundStartedMs: number;
}

/** The trainers, and what they report. */
export class Team {
  readonly #start: StartTrainer;
  readonly #members = new Map<string, Member>();

  constructor(start: StartTrainer) {
    this.#start = start;
  }

  /** Updates that trainers know to be applied, those of killed ones too. */
  get updates(): number {
    return sum(this.#members.values(), (member) => member.updates);
  }

  /** Updates that trainers have sent without learning that they were applied. */
  get unanswered(): number {
    return sum(this.#members.values(), (member) => member.sent - member.updates);
  }

  /** The state of each trainer, in the order in which they joined. */
  get progress(): readonly TrainerProgress[] {
    return [...this.#members].map(([name, { state, updates, loss }]) => ({
      name,
      state,
      updates,
      loss,
    }));
  }

  /** Whether every trainer at work has finished a round that began after this time. */
  allTrainedSince(timeMs: number): boolean {
    return [...this.#members.values()].every(
      (member) => member.state !== "training" || member.roundStartedMs > timeMs,
    );
  }

  /** Starts a trainer; `seed` decides the order of its batches. */
  add(name: string, seed: number): void {
    const child = this.#start(name, ["--trainer", name, "--seed", String(seed)], (message) => {
      const { event, loss, startedMs } = message;
      if (event === "joined") member.state = "training";
      if (event === "sending") member.sent++;
      if (event !== "update" || typeof loss !== "number" || typeof startedMs !== "number") return;
      member.updates++;
      member.loss = loss;
      member.roundStartedMs = startedMs;
    });
    const member: Member = {
      child,
      state: "starting",
      sent: 0,
      updates: 0,
      loss: undefined,
      roundStartedMs: 0,
    };
    this.#members.set(name, member);
  }

  /** Kills a trainer in the middle of its work. */
  async kill(name: string): Promise<void> {
    const member = this.#members.get(name);
    if (member === undefined) throw new Error(`no trainer is named ${name}`);
    await member.child.kill();
    member.state = "killed";
  }

  /** Lets every trainer finish its round. */
  async finish(): Promise<void> {
    const training = [...this.#members.values()].filter((member) => member.child.running);
    await Promise.all(training.map((member) => member.child.stop()));
    for (const member of training) member.state = "finished";
  }
}

function sum(members: Iterable<Member>, of: (member: Member) => number): number {
  return [...members].reduce((total, member) => total + of(member), 0);
}
