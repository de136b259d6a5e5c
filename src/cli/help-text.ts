import type { Command } from "commander";

/** Adds sections to the end of a command's help: titles, with lines that are printed unchanged. */
export function addHelp(
  command: Command,
  sections: Readonly<Record<string, readonly string[]>>,
): void {
  const texts = Object.entries(sections).map(
    ([title, lines]) => `\n${title}:\n${lines.join("\n")}`,
  );
  command.addHelpText("after", texts.join("\n"));
}
