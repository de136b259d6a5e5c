import type { NatsConnection } from "@nats-io/transport-node";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { JobSubjects } from "../protocol/subjects.ts";
import { Calls } from "./calls/calls.ts";
import { Client } from "./client.ts";
import { makeClientParts, stopParts } from "./client-parts.ts";
import type { ShardFallback } from "./shell/fallbacks.ts";
import type { Deadline } from "./timing/deadline.ts";
import { NatsWire } from "./wire/wire.ts";

/** A client that has joined its job, on a connection that becomes the client's own. */
export async function joinJob(options: {
  readonly connection: NatsConnection;
  readonly job: string;
  readonly trainer: string;
  readonly inbox: string;
  readonly deadline: Deadline;
  readonly onFallback?: ((fallback: ShardFallback) => void) | undefined;
}): Promise<Client> {
  const { connection, job, trainer, inbox, deadline, onFallback } = options;
  const subjects = new JobSubjects(job);
  const calls = new Calls();
  const fail = (error: PserverError): void => {
    calls.fail(error);
    stopParts(parts);
  };
  const wire = NatsWire.open(connection, inbox, fail);
  const parts = makeClientParts({ wire, subjects, trainer, fail, onFallback });
  connection.closed().then(
    (error) => fail(connectionClosed(error)),
    (error: unknown) => fail(ensureError(error)),
  );
  await parts.session.join(deadline);
  return new Client({ connection, subjects, trainer, calls, parts });
}

function connectionClosed(cause: unknown): PserverError {
  if (!(cause instanceof Error)) return new PserverError("CLOSED", "the client is closed");
  return new PserverError(
    "NO_BROKER",
    `the connection to the broker is lost for good: ${cause.message}`,
    {},
    { cause },
  );
}
