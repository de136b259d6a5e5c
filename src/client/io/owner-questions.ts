import type { Message } from "../../protocol/codec.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import type { Position } from "../../protocol/index.ts";
import type { Deadline } from "../calls/calls.ts";
import { noteReplaced, type Positions } from "../core/shard-window.ts";
import type { Requests } from "../wire/wire.ts";

/**
 * Longest wait at the host: just shorter than the pause between repeats, so that the host never holds two
 * copies of one request.
 */
const WAIT_MS = 900;

/** What asking the owner of a shard takes. */
export interface OwnerQuestionDeps {
  readonly requests: Requests;
  readonly positions: Positions;
}

/** A question to the owner of a shard that the owner may hold until it can answer. */
export interface OwnerQuestion<Reply> {
  readonly shard: number;
  readonly subject: string;
  /**
   * Writes the request, anew for each one that is sent: the position that the owner must have folded, and how long it
   * may hold the request.
   */
  readonly body: (at: Position & { readonly waitMs: number }) => Uint8Array;
  readonly read: (message: Message) => Reply;
}

/**
 * Asks the owner of a shard until it answers, and notes the position of the answer. Where the journal was replaced
 * meanwhile, it asks again from the new one's beginning.
 * @throws the error of the reply; NO_OWNER or TIMEOUT at the deadline.
 */
export async function askOwner<Reply extends Position>(
  { requests, positions }: OwnerQuestionDeps,
  { shard, subject, body, read }: OwnerQuestion<Reply>,
  deadline: Deadline,
): Promise<Reply> {
  while (true) {
    try {
      const reply = await requests.ask({
        subject,
        body: () => {
          const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
          return body({ ...positions.get(shard), waitMs });
        },
        read,
        deadline,
        nobody: () => new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard }),
      });
      positions.note(shard, reply);
      return reply;
    } catch (caught) {
      const error = ensureError(caught);
      if (reactionTo(error.code) !== "replaced") throw error;
      noteReplaced(positions, shard, error);
      // If the error names no newer journal, the next request would get it again at once.
      await deadline.sleep(WAIT_MS / 10);
    }
  }
}
