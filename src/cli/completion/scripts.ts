import type { CommandWord, FlagWord } from "./command-words.ts";

/** Shells that a completion script can be made for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** One of {@link SHELLS}. */
export type Shell = (typeof SHELLS)[number];

/** A completion script; it needs nothing but the shell and offers file names for the rest. */
export function completionScript(shell: Shell, commands: readonly CommandWord[]): string {
  switch (shell) {
    case "bash":
      return bashScript(commands);
    case "zsh":
      return zshScript(commands);
    case "fish":
      return fishScript(commands);
  }
}

function bashScript(commands: readonly CommandWord[]): string {
  const names = commands.map(({ word }) => word).join(" ");
  const cases = commands.flatMap(({ word, flags, choices }) => [
    `    ${word})`,
    ...flags
      .filter((flag) => flag.choices.length > 0)
      .map((flag) => `      [[ $previous == ${flag.word} ]] && words="${flag.choices.join(" ")}"`),
    `      [[ $current == -* ]] && words="${flags.map((flag) => flag.word).join(" ")}"`,
    ...(choices.length > 0 ? [`      [[ $current != -* ]] && words="${choices.join(" ")}"`] : []),
    "      ;;",
  ]);
  return [
    "# bash completion of pserver:   source <(pserver completion bash)",
    "_pserver() {",
    `  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words=""`,
    `  case "\${COMP_CWORD}:\${COMP_WORDS[1]}" in`,
    `    1:*) words="${names} help --help --version" ;;`,
    "    *)",
    `  case "\${COMP_WORDS[1]}" in`,
    ...cases,
    "  esac ;;",
    "  esac",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    "}",
    "complete -o default -F _pserver pserver",
    "",
  ].join("\n");
}

function zshScript(commands: readonly CommandWord[]): string {
  const describe = (text: string): string =>
    text.replace(/[[\]:\\]/g, "\\$&").replace(/'/g, "'\\''");
  const names = commands.map(({ word, description }) => `    '${word}:${describe(description)}'`);
  const flagSpec = (flag: FlagWord): string => {
    const value = flag.choices.length > 0 ? `:value:(${flag.choices.join(" ")})` : ":value:_files";
    return `        '${flag.word}[${describe(flag.description)}]${flag.takesValue ? value : ""}'`;
  };
  const cases = commands.flatMap(({ word, flags, choices }) => {
    const rest = choices.length > 0 ? `:argument:(${choices.join(" ")})` : ":file:_files";
    const specs = [...flags.map(flagSpec), `        '*${rest}'`];
    return [`    ${word})`, `      _arguments \\\n${specs.join(" \\\n")} ;;`];
  });
  return [
    "#compdef pserver",
    "# zsh completion of pserver:   source <(pserver completion zsh)",
    "_pserver() {",
    "  local -a commands=(",
    ...names,
    "  )",
    "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
    "  shift words; (( CURRENT-- ))",
    "  case $words[1] in",
    ...cases,
    "  esac",
    "}",
    "compdef _pserver pserver",
    "",
  ].join("\n");
}

function fishScript(commands: readonly CommandWord[]): string {
  const quote = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`;
  const lines = commands.flatMap(({ word, description, flags, choices }) => {
    const inside = `complete -c pserver -n ${quote(`__fish_seen_subcommand_from ${word}`)}`;
    return [
      `complete -c pserver -n __fish_use_subcommand -f -a ${word} -d ${quote(description)}`,
      ...(choices.length > 0 ? [`${inside} -f -a ${quote(choices.join(" "))}`] : []),
      ...flags.map((flag) => {
        const value = flag.choices.length > 0 ? ` -x -a ${quote(flag.choices.join(" "))}` : "";
        const takes = flag.takesValue && value === "" ? " -r" : value;
        return `${inside} -l ${flag.word.replace(/^--/, "")}${takes} -d ${quote(flag.description)}`;
      }),
    ];
  });
  return ["# fish completion of pserver:   pserver completion fish | source", ...lines, ""].join(
    "\n",
  );
}
