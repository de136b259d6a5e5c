import type { PserverError } from "../protocol/errors.ts";
import { RULES_WITH_BATCHES } from "../protocol/limits.ts";
import type { JobSubjects } from "../protocol/subjects.ts";
import { Lifecycle } from "./calls/lifecycle.ts";
import { Notes } from "./calls/notes.ts";
import { Parameters } from "./calls/parameters.ts";
import { Positions } from "./core/positions.ts";
import { BlockReader } from "./pull/block-reader.ts";
import { Puller } from "./pull/puller.ts";
import { SeenVersions } from "./push/seen-versions.ts";
import { Updates } from "./push/updates.ts";
import { Fallbacks, type ShardFallback } from "./shell/fallbacks.ts";
import { Session } from "./shell/session.ts";
import { Steps } from "./shell/steps.ts";
import { UpdateSender } from "./shell/update-sender.ts";
import { Requests } from "./wire/requests.ts";
import type { Wire } from "./wire/wire.ts";

/** The parts of a client. */
export interface ClientParts {
  readonly requests: Requests;
  readonly sender: UpdateSender;
  readonly session: Session;
  readonly parameters: Parameters;
  readonly lifecycle: Lifecycle;
  readonly notes: Notes;
  readonly updates: Updates;
  readonly puller: Puller;
  readonly steps: Steps;
  readonly fallbacks: Fallbacks;
}

/** Composes the parts of a client; `fail` is called when the client cannot go on. */
export function makeClientParts(options: {
  readonly wire: Wire;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly fail: (error: PserverError) => void;
  readonly onFallback?: ((fallback: ShardFallback) => void) | undefined;
}): ClientParts {
  const { wire, subjects, trainer, fail } = options;
  const payloadBytesMax = (): number => wire.payloadBytesMax;
  const positions = new Positions({
    journalReplaced: (shard, seen) => fallbacks.replaced(shard, seen),
  });
  const seen = new SeenVersions();
  const requests = Requests.open(wire);
  const sender: UpdateSender = UpdateSender.open({
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
  const parameters = new Parameters(session, positions, payloadBytesMax);
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
    takesBatches: () => session.rules >= RULES_WITH_BATCHES,
    payloadBytesMax,
    waitsForSteps: () => steps.readStep !== undefined,
    onClosed: (shard, step) => steps.noteClosed(shard, step),
    onPlaceLost: () => steps.lostPlace(),
  });
  return {
    requests,
    sender,
    session,
    parameters,
    steps,
    fallbacks,
    lifecycle: new Lifecycle({ ...shared, payloadBytesMax }),
    notes: new Notes(shared),
    updates: new Updates({ ...shared, steps, payloadBytesMax }),
    puller: new Puller({ parameters, reader }),
  };
}

/** Ends what the parts of a client do by themselves; may be called again. */
export function stopParts({ session, fallbacks, sender }: ClientParts): void {
  session.stop();
  fallbacks.close();
  sender.close();
}
