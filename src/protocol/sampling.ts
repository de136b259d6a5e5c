import { createHash } from "node:crypto";

/** Names a round of a fragment: the one that closes as this version. */
export interface NamedRound {
  readonly job: string;
  readonly fragment: string;
  readonly round: number;
}

/**
 * Returns which members may contribute to a round: those with the least SHA-256 of job, fragment, round and their own id,
 * as text in UTF-8 with a line feed between each two. So anybody who knows the members can tell. `sample`: how many; below
 * 1 a share of the members, rounded, but at least one.
 */
export function sampledMembers(
  { job, fragment, round }: NamedRound,
  members: readonly string[],
  sample: number,
): Set<string> {
  const count = sample >= 1 ? sample : Math.max(1, Math.round(sample * members.length));
  if (count >= members.length) return new Set(members);
  const drawn = members.map((trainer) => {
    const text = [job, fragment, round, trainer].join("\n");
    return { trainer, hash: createHash("sha256").update(text).digest("hex") };
  });
  drawn.sort((a, b) => (a.hash < b.hash ? -1 : 1));
  return new Set(drawn.slice(0, count).map(({ trainer }) => trainer));
}
