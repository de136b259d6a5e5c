const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Quotes a word for any POSIX shell. It may hold anything but NUL. */
export function shellWord(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Words as one command line. */
export function shellCommand(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** Lines of a script that set and export variables, and unset those that are undefined. */
export function exportLines(variables: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(variables).map(([name, value]) =>
    value === undefined ? `unset ${name}` : `export ${name}=${shellWord(value)}`,
  );
}
