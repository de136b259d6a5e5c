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
import { ControlService } from "../control/control-service.ts";
import { Saver } from "../control/saver.ts";
import type { OpenedJob } from "../job/open-job.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import type { OwnersClient } from "../requests/owners-client.ts";
import type { Refusals } from "../requests/refusals.ts";
import { RequestLane } from "../requests/request-queue.ts";
import { RequestServer } from "../requests/request-server.ts";

/** What the requests to a host as a whole are answered with. */
export interface HostServices {
  /** Where requests come in and are answered. */
  readonly connection: NatsConnection;
  readonly refusals: Refusals;
  readonly subjects: JobSubjects;
  readonly lifecycle: LifecycleService;
  readonly owners: OwnersClient;
  readonly job: OpenedJob;
  readonly jobName: string;
  /** Id of this host. */
  readonly host: string;
  /** Where models may be saved, if this host may. */
  readonly modelDirectory: string | undefined;
  /** Told what the operator has to mend. */
  readonly onError: (error: PserverError) => void;
  /** Called for each lifecycle request from another account of the broker, where none is answered. */
  readonly onOtherAccount: (trainer: string) => void;
}

/** Begins to answer lifecycle and control requests; gives what is to be closed. */
export function serveRequests(services: HostServices): RequestServer[] {
  const { connection, refusals, subjects, lifecycle, owners, job, jobName, host, modelDirectory } =
    services;
  const { synchronization, shards } = job.settings;
  const saver = new Saver({
    service: lifecycle,
    owners,
    directory: modelDirectory,
    job: jobName,
    host,
    onError: services.onError,
  });
  const { leases } = job;
  const control = new ControlService({
    service: lifecycle,
    synchronization,
    saver,
    owners,
    leases,
    shards,
  });
  return [
    new RequestServer({
      connection,
      refusals,
      subjects,
      subject: subjects.allLifecycle(),
      lanes: lifecycleLanes(),
      onOtherAccount: services.onOtherAccount,
      handle: async (trainer, verb, message) => {
        if (isOneOf(LIFECYCLE_VERBS, verb)) return await lifecycle.handle(trainer, verb, message);
        throw new PserverError("BAD_MESSAGE", `lifecycle: no such verb: ${verb}`, {
          expected: LIFECYCLE_VERBS,
        });
      },
    }),
    new RequestServer({
      connection,
      refusals,
      subjects,
      subject: subjects.allControl(),
      lanes: controlLanes(),
      handle: (id, verb, message, tell) => control.handle(id, verb, message, tell),
    }),
    new RequestServer({
      connection,
      refusals,
      subjects,
      subject: subjects.allStops(),
      isForAll: true,
      lanes: [new RequestLane({ verbs: ["stop"], atOnce: 16, atOnceEach: 2 })],
      handle: (id, verb, message, tell) => control.handle(id, verb, message, tell),
    }),
  ];
}

/** What keeps trainers alive goes before what they want, and reading goes last. */
function lifecycleLanes(): RequestLane[] {
  const sessions: readonly LifecycleVerb[] = ["join", "renew", "leave", "enter", "exit"];
  const reading: readonly LifecycleVerb[] = ["status"];
  const writing = LIFECYCLE_VERBS.filter((verb) => ![...sessions, ...reading].includes(verb));
  return [
    new RequestLane({ verbs: sessions, atOnce: 64, atOnceEach: 8 }),
    new RequestLane({ verbs: writing, atOnce: 32, atOnceEach: 8 }),
    new RequestLane({ verbs: reading, atOnce: 16, atOnceEach: 4 }),
  ];
}

/** Each takes long and much: one save at a time, few of all that wait; who looks waits for no snapshot. */
function controlLanes(): RequestLane[] {
  const saving: readonly ControlVerb[] = ["save"];
  const looking: readonly ControlVerb[] = ["hosts", "versions"];
  const others = CONTROL_VERBS.filter((verb) => ![...saving, ...looking].includes(verb));
  const bounds = { atOnce: 16, atOnceEach: 2, requestBytes: 1024 * 1024 };
  return [
    new RequestLane({ verbs: looking, ...bounds }),
    new RequestLane({ verbs: others, ...bounds }),
    new RequestLane({
      verbs: saving,
      atOnce: 1,
      atOnceEach: 1,
      requestBytes: 4 * 1024 * 1024 - 64 * 1024,
      retryAfterMs: 2_000,
    }),
  ];
}
