/** Sections for the end of a command's help: titles, with lines that are printed unchanged. */
export function helpText(sections: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(sections)
    .map(([title, lines]) => `\n${title}:\n${lines.join("\n")}`)
    .join("\n");
}
