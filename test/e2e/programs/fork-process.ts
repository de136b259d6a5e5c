/**
 * A fork or a rewind as a process of its own that is killed after one stage of it, for tests of interrupted ones. Its
 * argument is JSON: the broker's `url` and, if it wants one, `token`, the `job`, the cut `at`, absent to complete a rewind, the name `as` of a new
 * job, absent for a rewind, and the stage to be killed at.
 */

import { forkJob, rebuildFrom } from "../../../src/history/continue/fork-job.ts";
import { knownSettings } from "../../../src/history/continue/new-job.ts";
import { rewindJob } from "../../../src/history/continue/rewind-job.ts";
import { openHistory } from "../../../src/history/open-journal.ts";
import { JobSubjects, type Position } from "../../../src/protocol/index.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { HANG_MS } from "../../support/limits.ts";

const { url, token, job, at, as, killAt } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly url: string;
  readonly token?: string;
  readonly job: string;
  readonly at?: readonly Position[];
  readonly as?: string;
  readonly killAt?: string;
};

const reach = { servers: [url], timeoutMs: HANG_MS, ...(token !== undefined && { token }) };
const host = `test-${process.pid}`;
const { signal } = new AbortController();
const inboxPrefix = new JobSubjects(as ?? job).hostInbox(host);
const connection = await openConnection(reach, { name: "test", inboxPrefix });
const source = await openHistory({ kind: "broker", connection: reach, job });
const rebuild = rebuildFrom(source, signal);
const onStage = (stage: string): void => {
  if (stage === killAt) process.kill(process.pid, "SIGKILL");
};
const options = { connection, host, rebuild, signal, onStage };
const made =
  as === undefined
    ? await rewindJob({ ...options, job, at })
    : await forkJob({
        ...{ ...options, job: as, at: at ?? [], of: source, shards: source.shards },
        makeShard: (shard) => rebuild(shard, at?.[shard] as Position),
        known: await knownSettings(connection, source),
      });
process.stdout.write(`${JSON.stringify(made)}\n`);
process.exit(0);
