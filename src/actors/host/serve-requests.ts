import type { NatsConnection } from "@nats-io/transport-node";
import {
  CONTROL_VERBS,
  type ControlVerb,
  isOneOf,
  type JobSubjects,
  LIFECYCLE_VERBS,
  type LifecycleVerb,
  PserverError,
} from "../../protocol/index.ts";
import type { ControlService } from "../control/control-service.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { Refusals } from "../requests/refusals.ts";
import { RequestQueue } from "../requests/request-queue.ts";
import { type RequestHandler, RequestServer } from "../requests/request-server.ts";

/** Dependencies of {@link serveRequests}. */
export interface HostServices {
  /** Where requests arrive and are answered. */
  readonly connection: NatsConnection;
  readonly refusals: Refusals;
  readonly subjects: JobSubjects;
  readonly lifecycle: LifecycleService;
  readonly control: ControlService;
  /** Called for each lifecycle request from another account of the broker; none of them is answered. */
  readonly onOtherAccount: (trainer: string) => void;
}

/** Begins to answer lifecycle and control requests; returns the servers, which the caller closes. */
export function serveRequests(services: HostServices): RequestServer[] {
  const { connection, refusals, subjects, lifecycle, control, onOtherAccount } = services;
  const common = { connection, refusals, subjects };
  const handle: RequestHandler = (id, verb, message, tell) =>
    control.handle(id, verb, message, tell);
  const servers = [
    new RequestServer({
      ...common,
      subject: subjects.allLifecycle(),
      queues: lifecycleQueues(),
      onOtherAccount,
      handle: async (trainer, verb, message) => {
        if (isOneOf(LIFECYCLE_VERBS, verb)) return await lifecycle.handle(trainer, verb, message);
        throw new PserverError("BAD_MESSAGE", `lifecycle: no such verb: ${verb}`, {
          expected: LIFECYCLE_VERBS,
        });
      },
    }),
    new RequestServer({
      ...common,
      subject: subjects.allControl(),
      queues: controlQueues(),
      handle,
    }),
    new RequestServer({
      ...common,
      subject: subjects.allStops(),
      isForAll: true,
      queues: [new RequestQueue({ verbs: ["stop"], atOnce: 16, atOnceEach: 2 })],
      handle,
    }),
  ];
  for (const server of servers) server.listen();
  return servers;
}

/** Requests that keep sessions alive are served first, those that only read last. */
function lifecycleQueues(): RequestQueue[] {
  const sessions: readonly LifecycleVerb[] = ["join", "renew", "leave", "enter", "exit"];
  const reading: readonly LifecycleVerb[] = ["status"];
  const writing = LIFECYCLE_VERBS.filter((verb) => ![...sessions, ...reading].includes(verb));
  return [
    new RequestQueue({ verbs: sessions, atOnce: 64, atOnceEach: 8 }),
    new RequestQueue({ verbs: writing, atOnce: 32, atOnceEach: 8 }),
    new RequestQueue({ verbs: reading, atOnce: 16, atOnceEach: 4 }),
  ];
}

/**
 * Control requests take long and cost much, so few may wait and saves run one at a time. Requests that
 * only read do not wait for snapshots.
 */
function controlQueues(): RequestQueue[] {
  const saving: readonly ControlVerb[] = ["save"];
  const reading: readonly ControlVerb[] = ["hosts", "versions"];
  const others = CONTROL_VERBS.filter((verb) => ![...saving, ...reading].includes(verb));
  const bounds = { atOnce: 16, atOnceEach: 2, requestBytes: 1024 * 1024 };
  return [
    new RequestQueue({ verbs: reading, ...bounds }),
    new RequestQueue({ verbs: others, ...bounds }),
    new RequestQueue({
      verbs: saving,
      atOnce: 1,
      atOnceEach: 1,
      requestBytes: 4 * 1024 * 1024 - 64 * 1024,
      retryAfterMs: 2_000,
    }),
  ];
}
