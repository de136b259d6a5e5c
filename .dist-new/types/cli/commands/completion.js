import { Argument, Command } from "commander";
import { addHelp } from "../context.js";
import { listJobs, withAdmin } from "../open-job.js";
import { addJobOptions, addTrainerOption, } from "../options/connection-options.js";
/** Name of the hidden command that completion scripts ask for names. */
const COMPLETE_NAMES = "complete-names";
/** Kinds of names that the broker or the hosts can list. */
const NAME_KINDS = ["jobs", "parameters"];
/** The kind of names that arguments and flags take. */
const NAMED = {
    name: "parameters",
    job: "jobs",
    "--job": "jobs",
    "--param": "parameters",
};
/** Reads the words that can be completed from the commands themselves. */
function commandWords(program) {
    const shown = program.commands.filter((command) => command.name() !== COMPLETE_NAMES);
    return shown.map((command) => ({
        word: command.name(),
        description: command.description(),
        flags: [
            ...command.options.map(({ long, short, description, required, optional, argChoices }) => ({
                word: long ?? short ?? "",
                description,
                takesValue: required || optional,
                choices: argChoices ?? [],
                names: NAMED[long ?? ""],
            })),
            {
                word: "--help",
                description: "print the help",
                takesValue: false,
                choices: [],
                names: undefined,
            },
        ],
        choices: command.registeredArguments[0]?.argChoices ?? [],
        names: NAMED[command.registeredArguments[0]?.name() ?? ""],
    }));
}
/** Shells that a completion script can be made for. */
const SHELLS = ["bash", "zsh", "fish"];
/**
 * Writes a completion script. It needs nothing but the shell, asks the command itself for names of jobs and
 * parameters, and offers file names for the rest.
 */
function completionScript(shell, commands) {
    switch (shell) {
        case "bash":
            return bashScript(commands);
        case "zsh":
            return zshScript(commands);
        case "fish":
            return fishScript(commands);
    }
}
function bashScript(commands) {
    const names = commands.map(({ word }) => word).join(" ");
    const cases = commands.flatMap((command) => {
        const { word, flags, choices } = command;
        const values = flags.filter((flag) => flag.takesValue).map((flag) => flag.word);
        return [
            `    ${word})`,
            ...flags
                .filter((flag) => flag.choices.length > 0)
                .map((flag) => `      [[ $previous == ${flag.word} ]] && words="${flag.choices.join(" ")}"`),
            ...flags
                .filter((flag) => flag.names !== undefined)
                .map((flag) => `      [[ $previous == ${flag.word} ]] && kind=${flag.names}`),
            `      [[ $current == -* ]] && words="${flags.map((flag) => flag.word).join(" ")}"`,
            ...(choices.length > 0 ? [`      [[ $current != -* ]] && words="${choices.join(" ")}"`] : []),
            ...(command.names === undefined
                ? []
                : [`      _pserver_is_first " ${values.join(" ")} " && kind=${command.names}`]),
            "      ;;",
        ];
    });
    return [
        "# bash completion of pserver:   source <(pserver completion bash)",
        "# Names of parameters may hold colons.",
        `COMP_WORDBREAKS=\${COMP_WORDBREAKS//:}`,
        "# Whether the word to complete is the first argument; takes the flags that have a value.",
        "_pserver_is_first() {",
        "  local at word",
        "  for ((at = 2; at <= COMP_CWORD; at++)); do",
        `    word="\${COMP_WORDS[at]}"`,
        '    [[ $1 == *" $word "* ]] && { ((at++)); continue; }',
        "    [[ $word == -* ]] && continue",
        "    ((at == COMP_CWORD)); return",
        "  done",
        "  return 1",
        "}",
        "_pserver_names() {",
        `  local name typed="\${2//\\\\/}"`,
        "  while IFS= read -r name; do",
        '    [[ $name == "$typed"* ]] && COMPREPLY+=("$(printf %q "$name")")',
        `  done < <("\${COMP_WORDS[0]}" ${COMPLETE_NAMES} "$1" -- "\${COMP_WORDS[@]:2:COMP_CWORD-2}" 2>/dev/null)`,
        "}",
        "_pserver() {",
        `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words="" kind=""`,
        `  case "\${COMP_CWORD}:\${COMP_WORDS[1]}" in`,
        `    1:*) words="${names} help --help --version" ;;`,
        "    *)",
        `  case "\${COMP_WORDS[1]}" in`,
        ...cases,
        "  esac ;;",
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        '  [[ -n $kind ]] && _pserver_names "$kind" "$current"',
        "  return 0",
        "}",
        "complete -o default -F _pserver pserver",
        "",
    ].join("\n");
}
function zshScript(commands) {
    const describe = (text) => text.replace(/[[\]:\\]/g, "\\$&").replace(/'/g, "'\\''");
    const names = commands.map(({ word, description }) => `    '${word}:${describe(description)}'`);
    const flagSpec = (flag) => {
        const value = zshValue("value", flag) ?? ":value:_files";
        return `        '${flag.word}[${describe(flag.description)}]${flag.takesValue ? value : ""}'`;
    };
    const cases = commands.flatMap((command) => {
        const { word, flags } = command;
        const first = zshValue("argument", command);
        const specs = [
            ...flags.map(flagSpec),
            ...(first === undefined ? [] : [`        '1${first}'`]),
            "        '*:file:_files'",
        ];
        return [`    ${word})`, `      _arguments \\\n${specs.join(" \\\n")} ;;`];
    });
    return [
        "#compdef pserver",
        "# zsh completion of pserver:   source <(pserver completion zsh)",
        "_pserver_names() {",
        "  local -a names",
        `  names=("\${(@f)$(\${pserver_words[1]} ${COMPLETE_NAMES} $1 -- \${pserver_words[3,pserver_current-1]} 2>/dev/null)}")`,
        "  compadd -- $names",
        "}",
        "_pserver() {",
        "  local -a commands=(",
        ...names,
        "  )",
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
        `  local -a pserver_words=("\${words[@]}")`,
        "  shift words; (( CURRENT-- ))",
        "  case $words[1] in",
        ...cases,
        "  esac",
        "}",
        "compdef _pserver pserver",
        "",
    ].join("\n");
}
/** Writes how zsh completes a value: by its choices, or by names; undefined for any other value. */
function zshValue(what, { choices, names }) {
    if (choices.length > 0)
        return `:${what}:(${choices.join(" ")})`;
    return names === undefined ? undefined : `:${what}:{_pserver_names ${names}}`;
}
function fishScript(commands) {
    const quote = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;
    const ask = (kind) => quote(`(__pserver_names ${kind})`);
    const lines = commands.flatMap(({ word, description, flags, choices, names }) => {
        const inside = `complete -c pserver -n ${quote(`__fish_seen_subcommand_from ${word}`)}`;
        return [
            `complete -c pserver -n __fish_use_subcommand -f -a ${word} -d ${quote(description)}`,
            ...(choices.length > 0 ? [`${inside} -f -a ${quote(choices.join(" "))}`] : []),
            ...(names === undefined ? [] : [`${inside} -f -a ${ask(names)}`]),
            ...flags.map((flag) => {
                const choose = flag.choices.length > 0 ? ` -x -a ${quote(flag.choices.join(" "))}` : "";
                const value = flag.names === undefined ? choose : ` -x -a ${ask(flag.names)}`;
                const takes = flag.takesValue && value === "" ? " -r" : value;
                return `${inside} -l ${flag.word.replace(/^--/, "")}${takes} -d ${quote(flag.description)}`;
            }),
        ];
    });
    return [
        "# fish completion of pserver:   pserver completion fish | source",
        "function __pserver_names",
        "  set -l words (commandline -opc)",
        `  $words[1] ${COMPLETE_NAMES} $argv[1] -- $words[3..-1] 2>/dev/null`,
        "end",
        ...lines,
        "",
    ].join("\n");
}
/** Adds the command `pserver completion`, which writes a script that completes commands and flags. */
export function registerCompletion(program, context) {
    const command = program
        .command("completion")
        .summary("print a script that completes commands in a shell")
        .description("print a script that completes the commands and flags in a shell")
        .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
        .action((shell) => {
        context.stdout.write(completionScript(shell, commandWords(program)));
    });
    addHelp(command, {
        Examples: [
            "  source <(pserver completion bash)         # in ~/.bashrc",
            "  source <(pserver completion zsh)          # in ~/.zshrc, after compinit",
            "  pserver completion fish > ~/.config/fish/completions/pserver.fish",
        ],
    });
}
/** Short, because a person waits at the prompt. */
const TIMEOUT_MS = 1_000;
/** Names offered at most. */
const NAMES_MAX = 1_000;
/**
 * Adds the command behind the completion scripts: it prints the names of one kind, one per line, of the job and
 * broker in the words of the command line. Prints nothing if they cannot be listed in time.
 */
export function registerCompleteNames(program, context) {
    program
        .command(COMPLETE_NAMES, { hidden: true })
        .description("print names for the completion of a command line")
        .addArgument(new Argument("<kind>", "what to name").choices(NAME_KINDS))
        .argument("[words...]", "the words before, after --")
        .action(async (kind, words) => {
        const names = await namesOf(context, kind, words).catch(() => {
            // An error message would disturb the prompt.
            return [];
        });
        const typed = names.filter((name) => !/[\p{Cc}\p{Cf}]/u.test(name)).slice(0, NAMES_MAX);
        context.stdout.write(typed.map((name) => `${name}\n`).join(""));
    });
}
async function namesOf(context, kind, words) {
    const flags = flagsAmong(words);
    if (kind === "jobs")
        return await listJobs(context, flags);
    const { parameters } = await withAdmin(context, flags, (admin) => admin.statusAndParameters());
    return parameters.map(({ name }) => name);
}
/** Reads the flags of a job from the words before the one that is being typed. */
function flagsAmong(words) {
    // A flag at the end has no value yet.
    const whole = words.at(-1)?.startsWith("-") ? words.slice(0, -1) : words;
    const command = addTrainerOption(addJobOptions(new Command(), TIMEOUT_MS))
        .allowUnknownOption()
        .allowExcessArguments()
        .exitOverride()
        .configureOutput({ writeErr: () => undefined });
    command.parse([...whole], { from: "user" });
    const flags = command.opts();
    return { ...flags, timeout: TIMEOUT_MS };
}
//# sourceMappingURL=completion.js.map