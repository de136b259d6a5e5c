import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import { encodeStepRequest, parseStepReply, type StepReply } from "../../protocol/steps.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { noteReplaced, type Positions } from "../core/positions.ts";
import type { Deadline } from "../timing/deadline.ts";
import type { Requests } from "../wire/requests.ts";

/** Dependencies of step requests. */
export interface StepRequestDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
}

/** The server gives up just before a request is repeated, so that it never holds two of one. */
const WAIT_MS = 900;

/**
 * Waits until a shard knows the members of a revision and has closed a step; returns how far it is.
 * @throws TIMEOUT at the deadline, naming the members that are waited for.
 */
export async function askForStep(
  { requests, subjects, trainer, positions }: StepRequestDeps,
  wanted: {
    readonly shard: number;
    readonly revision: number;
    /** Called before each request: the trainer may have to wait for another step meanwhile, or none. */
    readonly step: () => number;
  },
  deadline: Deadline,
): Promise<StepReply> {
  const { shard, revision, step } = wanted;
  while (true) {
    try {
      const reply = await requests.ask({
        subject: subjects.step(shard, trainer),
        body: () => {
          const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
          return encodeStepRequest({ ...positions.get(shard), revision, step: step(), waitMs });
        },
        read: parseStepReply,
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
