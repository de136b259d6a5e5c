import { statfs } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { JetStreamAccountStats, JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Command } from "commander";
import { reportReplicas } from "../../actors/job/replica-report.ts";
import { probeStorage } from "../../actors/journal/streams.ts";
import { tapeStorage } from "../../actors/journal/tape/tape-store.ts";
import { brokerMemoryOf, type ProcessMemory } from "../../broker/broker-memory.ts";
import { findListener } from "../../broker/start-broker.ts";
import type { JobAdmin, Permissions, Role } from "../../client/admin/job-admin.ts";
import {
  archiverState,
  type DamagedReplica,
  damagedReplicas,
  describeLackingReplicas,
  idleShards,
  type ListedRewind,
  type ListedShard,
  type Participants,
  updatesOf,
} from "../../client/admin/participants.ts";
import { checkBrokerVersion } from "../../protocol/broker-version.ts";
import { GUARD_ACTIONS } from "../../protocol/config/index.ts";
import { ensureError, visible } from "../../protocol/errors.ts";
import {
  HEADER_BYTES_MAX,
  PAYLOAD_BYTES_MIN,
  SINGLE_BLOCK_BYTES_MAX,
} from "../../protocol/limits.ts";
import { showCut } from "../../protocol/messages/position.ts";
import { JobSubjects, jobOfStream } from "../../protocol/subjects.ts";
import { io } from "../../system/file-errors.ts";
import { isWithoutJetStream } from "../../transport/broker-error.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { addHelp, type CliContext, openOutput } from "../context.ts";
import { withAdmin, withStore } from "../open-job.ts";
import { type AskingFlags, addAskingOptions } from "../options/connection-options.ts";
import { formatBytes, formatCount, nameShards } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import { hangingLines } from "../output/wrap.ts";
import { EXIT } from "../report-error.ts";
import { describeArchiver, describeTape } from "./status.ts";

/** Result of a check. `warn`: works, but not as it should; `skip`: this user may not do the check. */
type CheckStatus = "ok" | "warn" | "fail" | "skip";

/** One line of the doctor's report. */
export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found. */
  readonly message: string;
  /** What to do about it; absent when all is well. */
  readonly advice?: string;
}

/** Reports that a check has passed. */
function ok(name: string, message: string): Check {
  return { name, status: "ok", message };
}

/** Reports what works, but not as it should. */
function warn(name: string, message: string, advice: string): Check {
  return { name, status: "warn", message, advice };
}

/** Reports what keeps the job from working. */
function fail(name: string, message: string, advice: string): Check {
  return { name, status: "fail", message, advice };
}

/** Reports that this user may not do a check. */
function skip(name: string, reason: string): Check {
  return { name, status: "skip", message: `not checked: ${reason}` };
}

/** With less, a parameter of 4 MiB is cut into blocks, so an update of it is no single transaction. */
const PAYLOAD_BYTES_WHOLE = SINGLE_BLOCK_BYTES_MAX + HEADER_BYTES_MAX;

/** Checks the Node.js that runs this command; `needed` is the version of package.json's `engines`. */
export function checkNode(version: string, needed: readonly [number, number]): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const enough = major > needed[0] || (major === needed[0] && minor >= needed[1]);
  if (enough) return ok("node", `Node.js ${version}`);
  const expected = needed.join(".");
  return fail(
    "node",
    `Node.js ${version}; ${expected} is needed`,
    `install Node.js ${expected} or newer`,
  );
}

/** Reports the broker's version, which is new enough: else there is no connection to it. */
export function checkVersion(version: string): Check {
  return ok("broker version", `nats-server ${version}, ${checkBrokerVersion(version)}`);
}

/** Checks the largest message that the broker accepts. */
export function checkMaxPayload(maxPayloadBytes: number): Check {
  const name = "max_payload";
  const size = formatBytes(maxPayloadBytes);
  const advice = "set max_payload: 8MB in the broker's configuration";
  if (maxPayloadBytes < PAYLOAD_BYTES_MIN) {
    return fail(name, `${size}; at least ${formatBytes(PAYLOAD_BYTES_MIN)} is needed`, advice);
  }
  if (maxPayloadBytes >= PAYLOAD_BYTES_WHOLE) return ok(name, size);
  const message = `${size}: parameters above ${formatBytes(maxPayloadBytes - HEADER_BYTES_MAX)} are cut`;
  return warn(name, `${message} into blocks, each updated by itself`, advice);
}

/** Matches the address of a broker that runs on this machine, or behind something that forwards to it. */
const LOOPBACK = /^(?:127\.[\d.]+|localhost|\[?::1\]?):(\d+)$/;

/** Checks what limits the memory of a broker on this machine; one elsewhere cannot be seen from here. */
async function checkMemoryAt(address: string): Promise<Check> {
  const port = LOOPBACK.exec(address)?.[1];
  const listener = port === undefined ? undefined : await findListener(Number(port));
  const memory = listener && brokerMemoryOf(listener.pid);
  if (memory !== undefined) return checkBrokerMemory(memory);
  return skip("broker memory", "the broker's process cannot be seen from here by this user");
}

/** Checks whether a broker may use more memory than there is, so that the system would kill it or others. */
export function checkBrokerMemory({ limitBytes, totalBytes }: ProcessMemory): Check {
  const name = "broker memory";
  const all = `${formatBytes(totalBytes)} that it shares with all others there`;
  const advice =
    "start it with GOMEMLIMIT in its environment, such as GOMEMLIMIT=2GiB; pserver up and run do so";
  if (limitBytes === undefined) return warn(name, `no limit, and ${all}`, advice);
  const message = `limited to ${formatBytes(limitBytes)} of ${all}`;
  return limitBytes < totalBytes ? ok(name, message) : warn(name, message, advice);
}

/**
 * Checks the disk under the store of a `pserver up` on this machine; `store` is its `--store`. The streams are
 * those of its broker, or none if it cannot be asked.
 */
async function checkDisk(store: string, streams: readonly StreamBytes[]): Promise<Check> {
  const directory = join(resolve(store), "store");
  try {
    const disk = await io("look at the disk of", directory, statfs(directory));
    return checkDiskSpace(disk.bavail * disk.bsize, streams);
  } catch (error) {
    const advice = "give the --store of a pserver up that runs on this machine";
    return fail("disk", ensureError(error).message, advice);
  }
}

/** Checks whether the disk can still hold what is reserved on it. */
export function checkDiskSpace(freeBytes: number, streams: readonly StreamBytes[]): Check {
  const comingBytes = streams.reduce(
    (sum, { bytes, limitBytes }) => sum + Math.max(0, limitBytes - bytes),
    0,
  );
  const message = `${formatBytes(freeBytes)} free, ${formatBytes(comingBytes)} reserved and not yet used`;
  if (comingBytes <= freeBytes) return ok("disk", message);
  const advice = "free space: on a full disk trainers wait with JOURNAL_FULL";
  return warn("disk", message, advice);
}

/** Checks whether hosts of the job answer, and each shard has an owner. */
async function checkHosts(admin: JobAdmin, job: string): Promise<Check[]> {
  try {
    const [status, { hosts, trainers, shards, rewind, archivers, stoppedArchivers }] =
      await Promise.all([admin.status(), admin.participants()]);
    const alive = `${formatCount(hosts.length, "host")}, ${formatCount(trainers.length, "trainer")}`;
    return [
      ok("hosts", `${alive}; job ${job} is ${status.state}`),
      checkShards(shards),
      ...checkGuarded(job, shards),
      ...checkDamagedReplicas(shards),
      ...checkRewind(job, rewind),
      ...checkArchivers({ archivers, stoppedArchivers, shards }, Date.now()),
    ];
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    const advice =
      code === "JOB_DAMAGED"
        ? '"pserver recover" shows which entries are damaged, and can write them again'
        : 'start one with "pserver host", and check --job';
    return [fail("hosts", `${code}: ${message}`, advice)];
  }
}

/**
 * Checks whether the archivers of a job run and keep up; one that has stopped is found for some days, until it is
 * started again.
 */
export function checkArchivers(
  {
    archivers,
    stoppedArchivers,
    shards,
  }: Pick<Participants, "archivers" | "stoppedArchivers" | "shards">,
  nowMs: number,
): Check[] {
  const name = "archiver";
  const start = 'start it again with "pserver archive" and its directory';
  const running = archivers.map((archiver) => {
    const text = describeArchiver(archiver, shards, nowMs);
    const { failure, silentMs, lagMs } = archiverState(archiver, nowMs);
    if (failure !== undefined || silentMs !== undefined) {
      return warn(name, text, `${start}: hosts wait for it only for a while`);
    }
    if (lagMs === undefined) return ok(name, text);
    return warn(name, text, "look at its messages; hosts trim what it lacks when journals grow");
  });
  const stopped = stoppedArchivers.map((archiver) => {
    const text = `stopped: ${describeArchiver(archiver, shards, nowMs)}`;
    return warn(name, text, `${start}: hosts trim without it`);
  });
  return [...running, ...stopped];
}

/** Checks whether every shard is served. */
export function checkShards(shards: readonly ListedShard[]): Check {
  const idle = [...idleShards(shards)];
  if (idle.length === 0) return ok("shards", `all ${shards.length} are served`);
  const states = idle.map(([state, numbers]) => `${nameShards(numbers)}: ${state}`).join("; ");
  const failed = shards.find(({ state }) => state === "failed" || state === "no-memory");
  if (failed === undefined) {
    const advice = "a host takes them over within seconds; if not, look at the hosts' messages";
    return warn("shards", `not served at the moment: ${states}`, advice);
  }
  const { code, message } = { ...(failed["error"] as Readonly<Record<string, unknown>>) };
  const why = `shard ${failed.shard}: ${String(code)}: ${String(message)}`;
  const look = failed.state === "failed" ? '; "pserver recover" shows what is lost' : "";
  return fail(
    "shards",
    `${states}; ${why}`,
    `see the error's code in docs/reference/errors.md${look}`,
  );
}

/** Reports a rewind that is not complete: some shards have gone back and others have not. */
/** Checks whether guards have held updates back or changed them since the present owners serve their shards. */
export function checkGuarded(job: string, shards: readonly ListedShard[]): Check[] {
  const { guarded } = updatesOf(shards);
  const counts = GUARD_ACTIONS.filter((action) => guarded[action] > 0).map(
    (action) => `${guarded[action]} by ${action}`,
  );
  if (counts.length === 0) return [];
  const advice = `look at them: pserver find guarded --job ${job}`;
  return [warn("guards", `updates above the limits of guards: ${counts.join(", ")}`, advice)];
}

function checkRewind(job: string, rewind: ListedRewind | undefined): Check[] {
  if (rewind === undefined) return [];
  const { id, begunMs, at, goneBack } = rewind;
  const back =
    goneBack.length === 0 ? "no shard has" : `${nameShards(goneBack)} of ${at.length} have`;
  const message =
    `${id}, begun ${new Date(begunMs).toISOString()}, to the cut ${showCut(at)}, is not complete: ` +
    `${back} gone back`;
  const command = `pserver rewind --job ${job}`;
  const advice = `unless it runs now, complete it with "${command} --complete", or drop it with "${command} --drop"`;
  return [warn("rewind", message, advice)];
}

/** Names the brokers whose copies of journals are damaged, one check for each; none without such a broker. */
export function checkDamagedReplicas(shards: readonly ListedShard[]): Check[] {
  const byBroker = new Map<string, DamagedReplica[]>();
  for (const replica of damagedReplicas(shards)) {
    byBroker.set(replica.broker, [...(byBroker.get(replica.broker) ?? []), replica]);
  }
  return [...byBroker].map(([broker, replicas]) => {
    const places = replicas.map(({ shard, from, to }) =>
      from === to ? `shard ${shard}, record ${from}` : `shard ${shard}, records ${from} to ${to}`,
    );
    const isOther = replicas.some((replica) => replica.isOther);
    const what = isOther ? "other records than were folded" : "damaged copies of journals";
    const why = isOther
      ? "it may have updates that the others lost with their power"
      : "check its disk";
    const advice = `${why}; then stop it, move its store_dir away and start it: it copies all from the others`;
    return warn("damaged replicas", `broker ${broker} has ${what}: ${places.join("; ")}`, advice);
  });
}

/** Fractions of a limit above which a warning and a failure are reported. */
const NEARLY = 0.8;
const OVER = 0.95;

/** Advice for answers that cannot come from JetStream. */
const GARBAGE =
  "check that --url leads to a nats-server, with nothing between that answers in its place";

/** From this fraction of its limit on, a host deletes history of a journal. */
const JOURNAL_NEARLY = 0.75;

/**
 * Checks JetStream itself, the account's storage, what the job's journals hold and have reserved, and the
 * disk of the broker's `store` if that is named. The connection's user must be permitted to listen to its inbox.
 */
export async function checkJetStream(
  connection: NatsConnection,
  job: string,
  timeoutMs: number,
  store?: string,
): Promise<Check[]> {
  if (isWithoutJetStream(connection)) return [disabled()];
  let manager: JetStreamManager;
  let account: JetStreamAccountStats;
  try {
    manager = await openJetStream(connection, timeoutMs).jetstreamManager(false);
    account = await manager.getAccountInfo();
  } catch (thrown) {
    const error = ensureError(thrown);
    if (error.code === "BAD_MESSAGE")
      return [fail("JetStream", `${error.code}: ${error.message}`, GARBAGE)];
    const message = `the JetStream API does not answer this user: ${error.message}`;
    return [warn("JetStream", message, "see the broker's log, and /jsz of its monitoring")];
  }
  const { limits } = account;
  const [fileLimit, streamBytes] = await Promise.all([
    checkFileLimit(connection, job, account.reserved_storage, timeoutMs),
    checkStreamBytes(manager, job, store),
  ]);
  return [
    ok("JetStream", `enabled, ${formatCount(account.streams, "stream")}`),
    checkStorage("file storage", {
      usedBytes: account.storage,
      reservedBytes: account.reserved_storage,
      limitBytes: limits.max_storage,
    }),
    checkStorage("memory storage", {
      usedBytes: account.memory,
      reservedBytes: account.reserved_memory,
      limitBytes: limits.max_memory,
    }),
    checkStreams(account.streams, limits.max_streams),
    fileLimit,
    ...streamBytes,
  ];
}

/**
 * Checks the job's journals and tape, and the disk of the store; skips this for a user who may not list
 * streams.
 */
async function checkStreamBytes(
  manager: JetStreamManager,
  job: string,
  store: string | undefined,
): Promise<Check[]> {
  try {
    const subjects = new JobSubjects(job);
    // Once: while a broker is missing, a cluster may take seconds for each list.
    const streams: StreamInfo[] = [];
    for await (const info of manager.streams.list()) {
      if (info.config.name !== subjects.storageProbeStream()) streams.push(info);
    }
    const all = streams.map(bytesOf);
    const isJournal = new RegExp(`^PS_${job}_\\d`);
    const journals = streams.filter(({ config: { name, subjects: own = [] } }) => {
      return isJournal.test(name) && own.some((subject) => subject.startsWith(`ps.${job}.log.`));
    });
    const tapes = streams.filter(({ config: { name } }) => name === subjects.tapeStream());
    return [
      checkJournals(job, journals.map(bytesOf)),
      ...checkReplicas(streams.filter(({ config }) => jobOfStream(config.name) === job)),
      ...tapes.map(({ state, config }) => ok("tape", describeTape(tapeStorage(state, config)))),
      checkLimits(all),
      ...(store === undefined ? [] : [await checkDisk(store, all)]),
    ];
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    if (code === "BAD_MESSAGE") return [fail("journals", `${code}: ${message}`, GARBAGE)];
    const advice = "this user may not list streams; look at /jsz of the broker's monitoring";
    return [skip("journals", advice)];
  }
}

/** Checks whether a cluster holds all copies of the job's streams; nothing to check for one copy. */
export function checkReplicas(streams: readonly Pick<StreamInfo, "config" | "cluster">[]): Check[] {
  const wanted = Math.max(1, ...streams.map(({ config }) => config.num_replicas));
  const report = reportReplicas(streams, wanted);
  if (report === undefined) return [];
  const lacking = describeLackingReplicas(report);
  if (lacking === undefined) return [ok("replicas", `${wanted} copies of all streams`)];
  const advice =
    "start the brokers that are missing; a new one in the place of one that is lost copies the streams by itself";
  const isDown = report.lacking.some(({ copies }) => copies === 0);
  return [isDown ? fail("replicas", lacking, advice) : warn("replicas", lacking, advice)];
}

/** What the broker is asked to reserve: little, so that it refuses only if it has nothing left. */
const ASKED_BYTES = 1024 * 1024;

/**
 * How long the broker may take to make that stream. A cluster may give it to a broker that has just died, and then says
 * nothing.
 */
const PROBE_TIMEOUT_MS = 3_000;

/**
 * Checks whether the broker still reserves file storage, by a stream that is removed again: a broker does not tell
 * its own limit. One that was started while its disk was full keeps a limit of nothing after the disk has space
 * again, and refuses every record.
 */
async function checkFileLimit(
  connection: NatsConnection,
  job: string,
  reservedBytes: number,
  timeoutMs: number,
): Promise<Check> {
  const name = "broker's limit";
  try {
    const probeMs = Math.min(timeoutMs, PROBE_TIMEOUT_MS);
    const manager = await openJetStream(connection, probeMs).jetstreamManager(false);
    const fits = await probeStorage(manager, new JobSubjects(job), "file", ASKED_BYTES);
    if (fits) return ok(name, "the broker still reserves file storage");
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    return skip(name, `${code}: ${message}`);
  }
  const advice =
    "if trainers get JOURNAL_FULL on a disk with space, the broker was started while it was full: restart it; " +
    "max_file in its configuration prevents that. Else raise max_file, or remove a job";
  const message =
    `the broker reserves no more file storage: the limits of all streams, ${formatBytes(reservedBytes)} together, ` +
    "reach or exceed its store: max_file, or what it took instead";
  return warn(name, message, advice);
}

function disabled(): Check {
  const advice = "start the broker with the nats.conf of this package, which enables it";
  return fail("JetStream", "the broker runs without JetStream", advice);
}

/** The bytes of one kind of storage. */
export interface StorageBytes {
  readonly usedBytes: number;
  /** The sum of all streams' limits. */
  readonly reservedBytes: number;
  /** Limit of the account; -1 if only the server's own limit counts. */
  readonly limitBytes: number;
}

/** Compares used bytes with the account's limit. */
export function checkStorage(name: string, bytes: StorageBytes): Check {
  const { usedBytes, reservedBytes, limitBytes } = bytes;
  const used = `${formatBytes(usedBytes)} used, ${formatBytes(reservedBytes)} reserved`;
  if (limitBytes < 0) return ok(name, `${used}, no limit of the account`);
  const message = `${used} of ${formatBytes(limitBytes)}`;
  const advice = "raise the limit, or remove what is not needed";
  if (usedBytes >= limitBytes * OVER) return fail(name, message, advice);
  if (reservedBytes > limitBytes) {
    return warn(name, `${message}: the limits of the streams exceed it together`, advice);
  }
  return usedBytes >= limitBytes * NEARLY ? warn(name, message, advice) : ok(name, message);
}

/**
 * Checks that every stream has a limit. One without can take the space that the broker has reserved for others, and on
 * a full store hosts cannot renew their leases.
 */
export function checkLimits(streams: readonly StreamBytes[]): Check {
  const name = "stream limits";
  const unlimited = streams.filter(({ limitBytes }) => limitBytes <= 0);
  if (unlimited.length === 0) return ok(name, `all ${streams.length} streams have one`);
  const names = unlimited.map((stream) => stream.name).join(", ");
  const advice =
    'give each one with "nats stream edit --max-bytes": on a full store hosts cannot renew their leases';
  return warn(name, `${names}: none, so they can fill the store`, advice);
}

function checkStreams(used: number, limit: number): Check {
  if (limit < 0) return ok("streams", `${used}, no limit of the account`);
  const found = `${used} of at most ${limit}`;
  if (used < limit) return ok("streams", found);
  return warn("streams", found, "raise the account's limit before you start another job");
}

/** The bytes of one stream in files; a limit of 0 or less is none. */
interface StreamBytes {
  readonly name: string;
  readonly bytes: number;
  readonly limitBytes: number;
}

/** Checks how full the fullest journal is. */
export function checkJournals(job: string, journals: readonly StreamBytes[]): Check {
  const name = "journals";
  if (journals.length === 0) return ok(name, `job ${job} has none yet`);
  const share = (stream: StreamBytes): number =>
    stream.limitBytes > 0 ? stream.bytes / stream.limitBytes : 0;
  const [fullest] = [...journals].sort((a, b) => share(b) - share(a));
  const bytes = journals.reduce((sum, stream) => sum + stream.bytes, 0);
  const reserved = journals.reduce((sum, stream) => sum + Math.max(0, stream.limitBytes), 0);
  const message = `${journals.length} hold ${formatBytes(bytes)}, ${formatBytes(reserved)} reserved`;
  if (fullest === undefined || share(fullest) < JOURNAL_NEARLY) return ok(name, message);
  const percent = Math.floor(share(fullest) * 100);
  const advice = "check that its shard has an owner, which snapshots it and frees storage";
  return warn(name, `${message}; ${fullest.name} is ${percent} % full`, advice);
}

function bytesOf({ config, state }: StreamInfo): StreamBytes {
  return { name: config.name, bytes: state.bytes, limitBytes: config.max_bytes };
}

const ADVICE = "see the users and permissions in docs/guides/secure.md";

/** What each role is for, in the words of the report. */
const PURPOSES: Readonly<Record<Role, string>> = {
  trainer: "act as a trainer",
  observer: "observe, as status and ls do",
  store: "store as a host",
  answers: "listen and answer as a host",
};

/**
 * Checks what the permissions allow. One role is enough: a host may have two users, and an observer need not be
 * a trainer. For a user without any, the report names what a trainer would need.
 */
export function checkPermissions({ roles, refused }: Permissions, trainer: string): Check[] {
  const missing = (role: Role): string => `the broker refuses ${refused[role].join(", ")}`;
  const describe = (name: string, role: Role, as = ""): Check => {
    const what = `${PURPOSES[role]}${as}`;
    return roles.has(role) ? ok(name, `may ${what}`) : skip(name, `this user may not ${what}`);
  };
  const as = ` under the id ${trainer}`;
  const mayNothing = roles.size === 0;
  const isObserver = roles.has("observer") && !roles.has("trainer");
  return [
    mayNothing
      ? fail("trainer permissions", missing("trainer"), ADVICE)
      : describe("trainer permissions", isObserver ? "observer" : "trainer", as),
    describe("host permissions (store)", "store"),
    describe("host permissions (answers)", "answers"),
  ];
}

/** As `engines` of package.json. */
const NODE_NEEDED = [20, 19] as const;

/** Flags of `pserver doctor`. */
interface DoctorFlags extends AskingFlags {
  /** `--store` of a `pserver up` on this machine. */
  readonly store?: string;
}

/** Runs all checks, at the same time those that do not depend on each other. Leaves nothing behind; throws only if interrupted. */
async function runDoctor(context: CliContext, flags: DoctorFlags): Promise<Check[]> {
  const here = [checkNode(process.versions.node, NODE_NEEDED)];
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
    const disk = flags.store === undefined ? [] : [await checkDisk(flags.store, [])];
    return [...here, ...disk, fail("broker", `${code}: ${message}`, advice)];
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
  // At the same time: of a cluster without one of its brokers each takes seconds.
  const [memory, asHost, hosts] = await Promise.all([
    checkMemoryAt(address),
    checkAsHost(context, flags, roles),
    roles.has("observer")
      ? checkHosts(admin, flags.job)
      : [skip("hosts", "this user may not ask them; that of a trainer or observer may")],
  ]);
  return [
    ok("broker", `${address}, ${Math.ceil(roundTripMs || 1)} ms away`),
    checkVersion(version),
    checkMaxPayload(payloadBytesMax),
    memory,
    ...asHost,
    ...checkPermissions(permissions, admin.trainer),
    ...hosts,
  ];
}

/** Checks JetStream on a connection with a host's inbox, which only a host's user may use. */
async function checkAsHost(
  context: CliContext,
  flags: DoctorFlags,
  roles: ReadonlySet<Role>,
): Promise<Check[]> {
  const { job, timeout, store } = flags;
  if (!roles.has("store")) {
    return [skip("JetStream", "this user may not use it; the user that hosts store with may")];
  }
  return await withStore(context, flags, async (own, host) => {
    const checks = [checkJetStream(own, job, timeout, store), checkEntries(own, job, host)];
    return (await Promise.all(checks)).flat();
  });
}

/** Checks whether the entries of the job's bucket can be read, and agree with what the shards know that are served. */
async function checkEntries(connection: NatsConnection, job: string, host: string): Promise<Check> {
  const name = "entries";
  // Loaded here, so that other commands start faster.
  const { openStoredJob } = await import("../../actors/job/open-job.ts");
  const { OwnersClient } = await import("../../actors/job/owners-client.ts");
  const { askKnown, inspectEntries } = await import("../../actors/recovery/inspect-entries.ts");
  const advice = '"pserver recover" shows them, and can write them again';
  try {
    const stored = await openStoredJob(connection, job);
    const owners = new OwnersClient({ ...stored, connection, host });
    const shards = Array.from({ length: stored.settings.shards }, (_, shard) => shard);
    const { problems, unasked } = await inspectEntries(stored.bucket, shards, (shard) =>
      askKnown(owners, shard),
    );
    const compared = `compared with ${shards.length - unasked.length} of ${shards.length} shards`;
    if (problems.length === 0) return ok(name, `the job's bucket can be read, ${compared}`);
    const texts = problems.map(({ key, problem }) => `${key}: ${problem}`);
    return fail(name, `damaged, ${compared}: ${texts.join("; ")}`, advice);
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    if (code === "BAD_NAME") return ok(name, `job ${job} has none yet`);
    return fail(name, `${code}: ${message}`, advice);
  }
}

const TIMEOUT_MS = 5_000;

/** Adds the command `pserver doctor`, which checks what a job needs, and says what to do about the rest. */
export function registerDoctor(program: Command, context: CliContext): void {
  const command = program
    .command("doctor")
    .summary("check broker, permissions, hosts; say what to do")
    .description("check broker, permissions and hosts, and say what to do");
  command.option("--store <dir>", "check the disk of a pserver up on this machine too");
  addAskingOptions(command, TIMEOUT_MS).action(async (flags: DoctorFlags) => {
    const output = openOutput(context, flags);
    const checks = await runDoctor(context, flags);
    const failed = checks.some(({ status }) => status === "fail");
    if (output.json) output.value({ ok: !failed, checks });
    else output.lines(checks.flatMap((check) => describeCheck(check, output)));
    if (failed) context.setExitCode(EXIT.failure);
  });
  addHelp(command, {
    "Exit code": [
      "  1 if a check fails, else 0; warnings, and checks that this user may not do, are no failures.",
      "  Nothing is changed; a stream that the broker makes to show that it has space is removed again.",
    ],
    "With --json": [
      '  {"ok","checks":[{"name","status","message","advice"}]}; status is ok, warn, fail, or skip',
      "  for a check that this user may not do.",
    ],
    Examples: [
      "  pserver doctor --store .pserver",
      "  pserver doctor --url nats://broker:4222 --creds host.creds --job mnist",
    ],
  });
}

const SYMBOLS: Readonly<Record<CheckStatus, string>> = {
  ok: "ok  ",
  warn: "warn",
  fail: "FAIL",
  skip: "-   ",
};

/** How each status is styled. */
const STYLES = { ok: "ok", warn: "warn", fail: "fail", skip: "faint" } as const;

/** Writes a check for people: what was found, and below it what to do. */
export function describeCheck(
  { name, status, message, advice }: Check,
  { paint, width }: TextFormat,
): string[] {
  const symbol = `${paint(STYLES[status], SYMBOLS[status])}  `;
  const lines = hangingLines(symbol, `${name}: ${visible(message)}`, width);
  return advice === undefined ? lines : [...lines, ...hangingLines("      -> ", advice, width)];
}
