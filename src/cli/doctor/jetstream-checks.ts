import type { JetStreamAccountStats, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { ensureError } from "../../protocol/errors.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import { isWithoutJetStream } from "../../transport/broker-error.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import { type Check, fail, ok, skip, warn } from "./check.ts";

/** Fractions of a limit above which a warning and a failure are reported. */
const NEARLY = 0.8;
const OVER = 0.95;

/** Advice for answers that cannot come from JetStream. */
const GARBAGE =
  "check that --url leads to a nats-server, with nothing between that answers in its place";

/** From this fraction of its limit on, a host deletes history of a journal. */
const JOURNAL_NEARLY = 0.75;

/**
 * Checks JetStream itself, the account's storage, and what the job's journals hold and have reserved.
 * The connection's user must be permitted to listen to its inbox.
 */
export async function checkJetStream(
  connection: NatsConnection,
  job: string,
  timeoutMs: number,
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
    ...(await checkJobStreams(manager, job)),
  ];
}

/** As {@link checkJournals}, with the job's tape; skipped for a user who may not list streams. */
async function checkJobStreams(manager: JetStreamManager, job: string): Promise<Check[]> {
  try {
    return [
      checkJournals(job, await journalStreams(manager, job)),
      ...(await tapeStream(manager, job)),
    ];
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    if (code === "BAD_MESSAGE") return [fail("journals", `${code}: ${message}`, GARBAGE)];
    const advice = "this user may not list streams; look at /jsz of the broker's monitoring";
    return [skip("journals", advice)];
  }
}

/** What the job's tape holds; nothing if it has none. */
async function tapeStream(manager: JetStreamManager, job: string): Promise<Check[]> {
  const checks: Check[] = [];
  for await (const { state } of manager.streams.list(new JobSubjects(job).allTapes())) {
    const { messages, bytes } = state;
    checks.push(
      ok("tape", `${formatCount(messages, "message")} hold ${formatBytes(bytes)}, never trimmed`),
    );
  }
  return checks;
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
  const found = `${used} of ${formatBytes(limitBytes)}`;
  const advice = "raise the limit, or remove what is not needed";
  if (usedBytes >= limitBytes * OVER) return fail(name, found, advice);
  return usedBytes >= limitBytes * NEARLY ? warn(name, found, advice) : ok(name, found);
}

function checkStreams(used: number, limit: number): Check {
  if (limit < 0) return ok("streams", `${used}, no limit of the account`);
  const found = `${used} of at most ${limit}`;
  if (used < limit) return ok("streams", found);
  return warn("streams", found, "raise the account's limit before you start another job");
}

/** The bytes of one journal; a limit of 0 or less is none. */
interface JournalBytes {
  readonly name: string;
  readonly bytes: number;
  readonly limitBytes: number;
}

/** How full the fullest journal is. */
export function checkJournals(job: string, journals: readonly JournalBytes[]): Check {
  const name = "journals";
  if (journals.length === 0) return ok(name, `job ${job} has none yet`);
  const share = (stream: JournalBytes): number =>
    stream.limitBytes > 0 ? stream.bytes / stream.limitBytes : 0;
  const [fullest] = [...journals].sort((a, b) => share(b) - share(a));
  const bytes = journals.reduce((sum, stream) => sum + stream.bytes, 0);
  const reserved = journals.reduce((sum, stream) => sum + Math.max(0, stream.limitBytes), 0);
  const found = `${journals.length} hold ${formatBytes(bytes)}, ${formatBytes(reserved)} reserved`;
  if (fullest === undefined || share(fullest) < JOURNAL_NEARLY) return ok(name, found);
  const percent = Math.floor(share(fullest) * 100);
  const advice = "check that its shard has an owner, which snapshots it and frees storage";
  return warn(name, `${found}; ${fullest.name} is ${percent} % full`, advice);
}

async function journalStreams(manager: JetStreamManager, job: string): Promise<JournalBytes[]> {
  const isJournal = new RegExp(`^PS_${job}_\\d`);
  const journals: JournalBytes[] = [];
  for await (const { config, state } of manager.streams.list(`ps.${job}.log.>`)) {
    const { name, max_bytes: limitBytes } = config;
    if (isJournal.test(name)) journals.push({ name, bytes: state.bytes, limitBytes });
  }
  return journals;
}
