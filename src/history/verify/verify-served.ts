import {
  type ErrorCode,
  ensureError,
  type Fields,
  type Position,
  PserverError,
  parsePosition,
  type WireError,
} from "../../protocol/index.ts";
import type { ReplayedShard } from "../replay/replayed-shard.ts";
import type { HistorySource } from "../source.ts";

/** Whether the host that serves a shard holds what the fold gives. */
export type ServedVerification =
  | { readonly kind: "equal"; readonly position: Position; readonly blocks: number }
  | {
      readonly kind: "different";
      readonly position: Position;
      /** What differs: `state`, or blocks as `"name" block 3`. */
      readonly what: readonly string[];
    }
  | { readonly kind: "unknown"; readonly error: WireError };

/** Errors after which nothing is known of what hosts hold: no host serves the shard, or an older one does. */
const UNKNOWN: readonly ErrorCode[] = [
  "NO_OWNER",
  "BAD_MESSAGE",
  "DENIED",
  "JOURNAL_REPLACED",
  "TIMEOUT",
];

/**
 * Compares the state and every block of a shard with what its owner holds, each at the position that the
 * owner has reached when it answers: the shard follows the journal up to there, so that trainers may train.
 * @throws JOURNAL_DAMAGED and the like if the journal cannot be followed; errors of the owner.
 */
export async function verifyServed(
  source: Pick<HistorySource, "askOwner">,
  shard: ReplayedShard,
): Promise<ServedVerification> {
  const what: string[] = [];
  let blocks = 0;
  try {
    if ((await ownersDigest(source, shard, {})) !== (await shard.stateDigest())) what.push("state");
    for (const { parameter, index } of shard.blocks) {
      const held = await ownersDigest(source, shard, { parameter, index });
      const own = await shard.blockDigest(parameter, index);
      if (held !== own) what.push(`${JSON.stringify(parameter)} block ${index}`);
      blocks += 1;
    }
  } catch (error) {
    const found = ensureError(error);
    if (!UNKNOWN.includes(found.code)) throw error;
    return { kind: "unknown", error: found.toWire() };
  }
  const { position } = shard;
  return what.length === 0
    ? { kind: "equal", position, blocks }
    : { kind: "different", position, what };
}

/** The owner's digest, after the shard has followed to the position that it is of. */
async function ownersDigest(
  source: Pick<HistorySource, "askOwner">,
  shard: ReplayedShard,
  block: Fields,
): Promise<unknown> {
  const { position } = shard;
  const message = await source.askOwner?.(shard.shard, "digest", { ...position, ...block });
  if (message === undefined) throw new PserverError("NO_OWNER", "no host can be reached from here");
  await shard.advance(parsePosition(message.fields));
  return message.fields["digest"] ?? undefined;
}
