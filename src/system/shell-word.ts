const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Quotes a word for any POSIX shell. It may hold anything but NUL. */
export function shellWord(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
