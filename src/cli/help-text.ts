import type { Command } from "commander";

/** Sections for the end of a command's help: titles, with lines that are printed unchanged. */
export function helpText(sections: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(sections)
    .map(([title, lines]) => `\n${title}:\n${lines.join("\n")}`)
    .join("\n");
}

/** Adds sections to the end of a command's help. */
export function addHelp(command: Command, sections: Parameters<typeof helpText>[0]): void {
  command.addHelpText("after", helpText(sections));
}
