import type { PserverError } from "../protocol/errors.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { BlockReader } from "./block-reader.ts";
import { Positions } from "./core/positions.ts";
import { Fallbacks, type ShardFallback } from "./fallbacks.ts";
import { Lifecycle } from "./lifecycle.ts";
import { Parameters } from "./parameters.ts";
import { Puller } from "./puller.ts";
import { Requests } from "./requests.ts";
import { SeenVersions } from "./seen-versions.ts";
import { Session } from "./session.ts";
import { Steps } from "./steps.ts";
import { UpdateSender } from "./update-sender.ts";
import { Updates } from "./updates.ts";
import type { Wire } from "./wire.ts";

/** What a client is made of. */
export interface ClientParts {
  readonly requests: Requests;
  readonly sender: UpdateSender;
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
  const positions = new Positions({
    journalReplaced: (shard, seen) => fallbacks.replaced(shard, seen),
  });
  const seen = new SeenVersions();
  const requests = new Requests(wire);
  const sender: UpdateSender = new UpdateSender({
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
    onEnded: () => sender.pause(),
    onJoined: ({ session, shards, synchronization }) => {
      steps.sessionBegan(session, shards, synchronization);
      sender.start(session);
    },
    onLost: fail,
  });
  const parameters = new Parameters(session, positions);
  const shared = { requests, sender, session, parameters, positions, subjects, trainer, seen };
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
    sender,
    session,
    parameters,
    steps,
    fallbacks,
    lifecycle: new Lifecycle(shared),
    updates: new Updates({ ...shared, steps, payloadBytesMax: () => wire.payloadBytesMax }),
    puller: new Puller({ parameters, reader }),
  };
}
