import { ensureError } from "../../protocol/errors.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import type { CliContext } from "../context.ts";
import { type OpenJob, withHosts } from "../job/open-job.ts";
import type { TrainerFlags } from "../options/connection-options.ts";
import { checkMaxPayload, checkNode, checkVersion } from "./broker-checks.ts";
import { type Check, fail, ok } from "./check.ts";
import { checkHosts } from "./host-checks.ts";
import { checkJetStream } from "./jetstream-checks.ts";
import { checkPermissions } from "./permission-checks.ts";

/** As `engines` of package.json. */
const NODE_NEEDED = [20, 19] as const;

/** Every check, in the order in which one depends on another. Changes nothing and never throws. */
export async function runDoctor(context: CliContext, flags: TrainerFlags): Promise<Check[]> {
  const node = checkNode(process.versions.node, NODE_NEEDED);
  try {
    const checks = await withHosts(context, flags, (job) => checkJob(job, flags));
    return [node, ...checks];
  } catch (thrown) {
    context.signal.throwIfAborted();
    const { code, message } = ensureError(thrown);
    const advice = 'start a broker with "pserver up", and check --url and the credentials';
    return [node, fail("broker", `${code}: ${message}`, advice)];
  }
}

async function checkJob(
  { connection, requests, trainer }: OpenJob,
  flags: TrainerFlags,
): Promise<Check[]> {
  const { info } = connection;
  const server = `${connection.getServer()}, ${Math.ceil((await connection.rtt()) || 1)} ms away`;
  return [
    ok("broker", server),
    checkVersion(info?.version ?? ""),
    checkMaxPayload(info?.max_payload ?? 0),
    ...(await checkJetStream(connection, flags.job, flags.timeout)),
    ...(await checkPermissions(connection, new JobSubjects(flags.job), trainer)),
    ...(await checkHosts(requests, flags.job)),
  ];
}
