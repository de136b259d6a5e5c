import type { PserverError } from "../protocol/errors.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { BlockReader } from "./block-reader.ts";
import { Fallbacks, type ShardFallback } from "./fallbacks.ts";
import { Lifecycle } from "./lifecycle.ts";
import { Outbox } from "./outbox.ts";
import { Parameters } from "./parameters.ts";
import { Positions } from "./positions.ts";
import { Puller } from "./puller.ts";
import { Requests } from "./requests.ts";
import { SeenVersions } from "./seen-versions.ts";
import { Session } from "./session.ts";
import { Steps } from "./steps.ts";
import { Updates } from "./updates.ts";
import type { Wire } from "./wire.ts";

/** What a client is made of. */
export interface ClientParts {
  readonly requests: Requests;
  readonly outbox: Outbox;
  readonly session: Session;
  readonly parameters: Parameters;
  readonly lifecycle: Lifecycle;
  readonly updates: Updates;
  readonly puller: Puller;
  readonly steps: Steps;
  readonly fallbacks: Fallbacks;
}

/** Makes the parts of a client and joins them; `fail` is called when it can do nothing more. */
export function makeClientParts(options: {
  readonly wire: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly fail: (error: PserverError) => void;
  readonly onFallback?: ((fallback: ShardFallback) => void) | undefined;
}): ClientParts {
  const { wire, subjects, trainer, fail } = options;
  const positions = new Positions((shard, position) => fallbacks.replaced(shard, position));
  const seen = new SeenVersions();
  const requests = new Requests(wire);
  const outbox: Outbox = new Outbox({
    wire,
    subjects,
    trainer,
    positions,
    onSessionEnd: (error) => session.ended(error),
  });
  const session: Session = new Session({
    requests,
    subjects,
    trainer,
    onEnded: () => outbox.pause(),
    onJoined: (reply) => outbox.start(reply.session),
    onLost: fail,
  });
  const parameters = new Parameters(session, positions);
  const shared = { requests, outbox, session, parameters, positions, subjects, trainer, seen };
  const steps = new Steps(shared);
  const fallbacks = new Fallbacks({
    ...shared,
    session: () => session.number,
    onLost: (shard) => {
      steps.fellBack(shard);
      seen.clear();
    },
    tell: options.onFallback,
  });
  const reader = new BlockReader({
    ...shared,
    waitsForSteps: () => steps.readStep !== undefined,
    onClosed: (shard, step) => steps.noteClosed(shard, step),
  });
  return {
    requests,
    outbox,
    session,
    parameters,
    steps,
    fallbacks,
    lifecycle: new Lifecycle(shared),
    updates: new Updates({ ...shared, steps, payloadBytesMax: () => wire.payloadBytesMax }),
    puller: new Puller({ parameters, reader }),
  };
}
