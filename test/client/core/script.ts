import type { Random } from "../../simulation/random.ts";

/** What a machine of the trainer core is given and does, one event (`>`) or command (`<`) a line. */
export interface Machine {
  /** Takes an event; its commands go to the recorder that the machine was made with. */
  take(event: string): void;
}

/** Lines of a script, in the order in which things happened. */
export class Recorder {
  readonly lines: string[] = [];
  /** Says whether the command that was just given fails: the event that reports it, or undefined. */
  failure: (command: string) => string | undefined = () => undefined;

  /** Notes a command; the event that reports its failure at once, if it fails. */
  command(...words: readonly (string | number | boolean)[]): readonly string[] | undefined {
    const command = toLine(words);
    this.lines.push(`< ${command}`);
    const failed = this.failure(command);
    if (failed === undefined) return undefined;
    this.lines.push(`> ${failed}`);
    return failed.split(" ");
  }
}

/** Words of a line; true and false are 1 and 0. */
export function toLine(words: readonly (string | number | boolean)[]): string {
  return words.map((word) => (typeof word === "boolean" ? Number(word) : word)).join(" ");
}

/** A source of valid events, and what it learns from commands. */
export interface Player {
  /** The settings of the machine, as words. */
  readonly settings: string;
  /** The next event; undefined if the chosen kind makes no sense now. */
  next(): string | undefined;
  /** Takes note of a command; says whether it fails. */
  onCommand(command: string): string | undefined;
}

/** Records a script of so many events. */
export function record(
  player: Player,
  make: (settings: string, recorder: Recorder) => Machine,
  events: number,
): string {
  const recorder = new Recorder();
  const machine = make(player.settings, recorder);
  recorder.failure = (command) => player.onCommand(command);
  while (events > 0) {
    const event = player.next();
    if (event === undefined) continue;
    events -= 1;
    recorder.lines.push(`> ${event}`);
    machine.take(event);
  }
  return [`# ${player.settings}`, ...recorder.lines].join("\n");
}

/** Runs the events of a script; what the machine does, as a script. */
export function replay(
  script: string,
  make: (settings: string, recorder: Recorder) => Machine,
): string {
  const [header = "", ...lines] = script.split("\n");
  const recorder = new Recorder();
  const machine = make(header.slice(2), recorder);
  recorder.failure = () => {
    const next = lines[recorder.lines.length];
    const reports = next?.startsWith("> not-published ") === true;
    return reports ? next?.slice(2) : undefined;
  };
  // A report of a failure is taken by the command that fails.
  for (let at = 0; at < lines.length; at = Math.max(at + 1, recorder.lines.length)) {
    const line = lines[at] ?? "";
    if (!line.startsWith("> ")) break;
    recorder.lines.push(line);
    machine.take(line.slice(2));
  }
  return [header, ...recorder.lines].join("\n");
}

/** One of the words, each with its weight. */
export function pickWord(random: Random, weights: Readonly<Record<string, number>>): string {
  const entries = Object.entries(weights).map(([word, weight]) => [weight, word] as const);
  return random.pickWeighted(entries) ?? "";
}
