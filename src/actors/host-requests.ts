import type { NatsConnection } from "@nats-io/transport-node";
import { isOneOf, type JobSubjects, LIFECYCLE_VERBS, PserverError } from "../protocol/index.ts";
import { ControlService } from "./control.ts";
import type { OpenedJob } from "./job.ts";
import type { LifecycleService } from "./lifecycle/service.ts";
import type { OwnersClient } from "./owners-client.ts";
import { RequestServer } from "./request-server.ts";
import { Saver } from "./saver.ts";

/** What the requests to a host as a whole are answered with. */
export interface HostServices {
  /** Where requests come in and are answered. */
  readonly connection: NatsConnection;
  readonly subjects: JobSubjects;
  readonly lifecycle: LifecycleService;
  readonly owners: OwnersClient;
  readonly job: OpenedJob;
  readonly jobName: string;
  /** Id of this host. */
  readonly host: string;
  /** Where models may be saved, if this host may. */
  readonly modelDirectory: string | undefined;
}

/** Begins to answer lifecycle and control requests; gives what is to be closed. */
export function serveRequests(services: HostServices): RequestServer[] {
  const { connection, subjects, lifecycle, owners, job, jobName, host, modelDirectory } = services;
  const { synchronization, shards } = job.settings;
  const saver = new Saver({
    service: lifecycle,
    owners,
    directory: modelDirectory,
    job: jobName,
    host,
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
      subjects,
      subject: subjects.allLifecycle(),
      handle: async (trainer, verb, message) => {
        if (isOneOf(LIFECYCLE_VERBS, verb)) return await lifecycle.handle(trainer, verb, message);
        throw new PserverError("BAD_MESSAGE", `lifecycle: no such verb: ${verb}`, {
          expected: LIFECYCLE_VERBS,
        });
      },
    }),
    new RequestServer({
      connection,
      subjects,
      subject: subjects.allControl(),
      handle: (id, verb, message, tell) => control.handle(id, verb, message, tell),
    }),
    new RequestServer({
      connection,
      subjects,
      subject: subjects.allStops(),
      isForAll: true,
      handle: (id, verb, message, tell) => control.handle(id, verb, message, tell),
    }),
  ];
}
