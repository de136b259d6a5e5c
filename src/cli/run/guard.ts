import { shellWord } from "./shell-words.ts";
import type { Variables } from "./trainer-variables.ts";

/** Time in seconds between SIGTERM and SIGKILL for a trainer whose launcher has ended. */
const GRACE_SECONDS = 5;

/**
 * The shell program that runs one trainer and ends it with its launcher. The launcher writes to its
 * standard input: first one line of shell that sets the command and its variables, then names of signals
 * for the whole process group. When the input ends, because the launcher or the connection has ended, the
 * group gets SIGTERM and, after a grace period, SIGKILL. The exit code is the trainer's, as in shells.
 *
 * It holds no newline, single quote, backslash or exclamation mark, so that any login shell takes it in
 * single quotes.
 */
export const GUARD = [
  "exec 3<&0 0</dev/null",
  "gone=",
  "trap : INT TERM HUP",
  'trap "gone=1" USR1',
  "nl=$(echo; echo x)",
  // Removes the x, which kept the shell from cutting off the newline.
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  "nl=${nl%x}",
  "IFS= read -r start <&3 || exit 125",
  'eval "$start" || exit 125',
  '( trap "" INT TERM HUP USR1; while IFS= read -r name; do kill -s "$name" 0; done;' +
    ` kill -s USR1 $$; kill -s TERM 0; sleep ${GRACE_SECONDS}; kill -s KILL 0 ) <&3 3<&- >/dev/null 2>&1 &` +
    " watcher=$!",
  '"$@" 3<&-',
  "code=$?",
  'kill -s KILL "$watcher"',
  // Ends processes that the trainer has left running.
  '[ -z "$gone" ] || kill -s KILL 0',
  'trap "" TERM',
  "kill -s TERM 0",
  'exit "$code"',
].join("; ");

/** Command and variables of a trainer. */
export interface GuardedStart {
  readonly command: readonly string[];
  /** Variables to add to what the guard has, or to remove from it. */
  readonly variables: Variables;
  /** Variables to add where the guard has none of the name. */
  readonly defaults?: Variables;
  /** Where to run, if not where the guard does. */
  readonly directory?: string;
}

/** The first line for {@link GUARD}, with its newline. */
export function startLine({ command, variables, defaults = {}, directory }: GuardedStart): string {
  const initial = Object.entries(defaults).flatMap(([name, value]) =>
    value === undefined ? [] : [`export ${name}="\${${name}-${value}}"`],
  );
  const changes = Object.entries(variables).map(([name, value]) =>
    value === undefined ? `unset ${name}` : `export ${name}=${inLine(value)}`,
  );
  const enter = directory === undefined ? [] : [`cd -- ${inLine(directory)}`];
  const words = command.map(inLine).join(" ");
  return `${[...enter, ...initial, ...changes, `set -- ${words}`].join(" && ")}\n`;
}

/** A shell word in which `$nl` stands for each newline. */
function inLine(word: string): string {
  return word.split("\n").map(shellWord).join('"$nl"');
}
