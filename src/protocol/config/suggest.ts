/** What other libraries call an entry, in lower case without separators. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  alg: "optimizer",
  algorithm: "optimizer",
  betas: "beta1",
  eps: "epsilon",
  eta: "learningRate",
  gradclip: "clipNorm",
  lr: "learningRate",
  lrschedule: "learningRate",
  maxgradnorm: "clipNorm",
  maxnorm: "clipNorm",
  opt: "optimizer",
  rule: "optimizer",
  scheduler: "learningRate",
  stepsize: "learningRate",
  wd: "l2",
  weightdecay: "l2",
};

/** Returns the one of these names that somebody who wrote `given` means; undefined if that cannot be guessed. */
export function suggest(given: string, names: readonly string[]): string | undefined {
  const wanted = plain(given);
  const other = OTHER_NAMES[wanted];
  if (other !== undefined && names.includes(other)) return other;
  // A third of the characters may be wrong: more than that is another word.
  const limit = Math.min(2, Math.floor(wanted.length / 3));
  const ranked = names
    .map((name) => ({ name, edits: editsBetween(wanted, plain(name)) }))
    .sort((a, b) => a.edits - b.edits);
  const [best] = ranked;
  return best !== undefined && best.edits <= limit ? best.name : undefined;
}

function plain(name: string): string {
  return name
    .slice(0, 40)
    .replaceAll(/[^A-Za-z0-9]/g, "")
    .toLowerCase();
}

/** Counts the characters to insert, remove or replace between two words (Levenshtein's distance). */
function editsBetween(one: string, other: string): number {
  let before = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = (before[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (before[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    before = row;
  }
  return before[other.length] ?? 0;
}
