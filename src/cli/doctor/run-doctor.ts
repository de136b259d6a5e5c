import type { JobAdmin } from "../../client/admin/job-admin.ts";
import type { Role } from "../../client/admin/permissions.ts";
import { ensureError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { withStore } from "../job/open-broker.ts";
import { withAdmin } from "../job/open-job.ts";
import type { AskingFlags } from "../options/asking-options.ts";
import { checkMaxPayload, checkNode, checkVersion } from "./broker-checks.ts";
import { type Check, fail, ok, skip } from "./check.ts";
import { checkDisk } from "./disk-check.ts";
import { checkHosts } from "./host-checks.ts";
import { checkJetStream } from "./jetstream-checks.ts";
import { checkPermissions } from "./permission-checks.ts";

/** As `engines` of package.json. */
const NODE_NEEDED = [20, 19] as const;

/** Flags of `pserver doctor`. */
export interface DoctorFlags extends AskingFlags {
  /** `--store` of a `pserver up` on this machine. */
  readonly store?: string;
}

/** Runs all checks, each after those that it depends on. Changes nothing; throws only if interrupted. */
export async function runDoctor(context: CliContext, flags: DoctorFlags): Promise<Check[]> {
  const here = [checkNode(process.versions.node, NODE_NEEDED)];
  if (flags.store !== undefined) here.push(await checkDisk(flags.store));
  try {
    const checks = await withAdmin(context, flags, (admin) => checkJob(context, admin, flags));
    return [...here, ...checks];
  } catch (thrown) {
    context.signal.throwIfAborted();
    const { code, message } = ensureError(thrown);
    const advice =
      code === "BROKER_TOO_OLD"
        ? "install nats-server 2.12"
        : 'start a broker with "pserver up", and check --url and the credentials';
    return [...here, fail("broker", `${code}: ${message}`, advice)];
  }
}

async function checkJob(
  context: CliContext,
  admin: JobAdmin,
  flags: DoctorFlags,
): Promise<Check[]> {
  const { address, roundTripMs, version, payloadBytesMax } = await admin.broker();
  const permissions = await admin.permissions();
  const { roles } = permissions;
  return [
    ok("broker", `${address}, ${Math.ceil(roundTripMs || 1)} ms away`),
    checkVersion(version),
    checkMaxPayload(payloadBytesMax),
    ...(await checkStorage(context, flags, roles)),
    ...checkPermissions(permissions, admin.trainer),
    ...(roles.has("observer")
      ? await checkHosts(admin, flags.job)
      : [skip("hosts", "this user may not ask them; that of a trainer or observer may")]),
  ];
}

/** The checks of JetStream, on a connection with a host's inbox, which only a host's user may use. */
async function checkStorage(
  context: CliContext,
  flags: DoctorFlags,
  roles: ReadonlySet<Role>,
): Promise<Check[]> {
  const { job, timeout } = flags;
  if (!roles.has("store")) {
    return [skip("JetStream", "this user may not use it; the user that hosts store with may")];
  }
  return await withStore(context, flags, (own) => checkJetStream(own, job, timeout));
}
