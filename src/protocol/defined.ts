/** The entries that have a value: leaving one out and giving it as undefined mean the same. */
export function defined<Entries extends object>(
  entries: Entries,
): { [Key in keyof Entries]?: Exclude<Entries[Key], undefined> } {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Entries]?: Exclude<Entries[Key], undefined>;
  };
}
