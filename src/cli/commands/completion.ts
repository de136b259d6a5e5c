import { Argument, type Command } from "commander";
import { commandWords } from "../completion/command-words.ts";
import { completionScript, SHELLS, type Shell } from "../completion/scripts.ts";
import type { CliContext } from "../context.ts";
import { addHelp } from "../help-text.ts";

/** `pserver completion`: a script that completes commands and flags. */
export function registerCompletion(program: Command, context: CliContext): void {
  const command = program
    .command("completion")
    .description("print a script that completes the commands and flags in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action((shell: Shell) => {
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
