import {
  type JetStreamAccountStats,
  type JetStreamManager,
  jetstreamManager,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { ensureError } from "../../protocol/errors.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import { type Check, fail, ok, warn } from "./check.ts";

/** Used shares above which room runs out, and above which it has. */
const NEARLY = 0.8;
const OVER = 0.95;

/** A host gives up history of a journal at three quarters. */
const JOURNAL_NEARLY = 0.75;

/** JetStream itself, the room of the account, and how full the job's journals are. */
export async function checkJetStream(
  connection: NatsConnection,
  job: string,
  timeoutMs: number,
): Promise<Check[]> {
  if (connection.info?.jetstream !== true) return [disabled()];
  let manager: JetStreamManager;
  let account: JetStreamAccountStats;
  try {
    manager = await jetstreamManager(connection, { timeout: timeoutMs });
    account = await manager.getAccountInfo();
  } catch (error) {
    const message = `the JetStream API does not answer this user: ${ensureError(error).message}`;
    const advice =
      "only the user under which hosts store needs it: see the room in the broker's monitoring, /jsz";
    return [warn("JetStream", message, advice)];
  }
  const journals = await journalStreams(manager, job);
  return [
    ok("JetStream", `enabled, ${formatCount(account.streams, "stream")}`),
    checkRoom("file storage", account.storage, account.limits.max_storage),
    checkRoom("memory storage", account.memory, account.limits.max_memory),
    checkStreams(account.streams, account.limits.max_streams),
    checkJournals(job, journals),
  ];
}

function disabled(): Check {
  const advice = "start the broker with the nats.conf of this package, which enables it";
  return fail("JetStream", "the broker runs without JetStream", advice);
}

/** Used bytes against the account's limit; -1 means that only the server's own limit counts. */
export function checkRoom(name: string, usedBytes: number, limitBytes: number): Check {
  const used = `${formatBytes(usedBytes)} used`;
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

/** How full the fullest journal is. */
export function checkJournals(
  job: string,
  journals: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly limitBytes: number;
  }[],
): Check {
  const name = "journals";
  if (journals.length === 0) return ok(name, `job ${job} has none yet`);
  const share = (stream: { bytes: number; limitBytes: number }): number =>
    stream.limitBytes > 0 ? stream.bytes / stream.limitBytes : 0;
  const [fullest] = [...journals].sort((a, b) => share(b) - share(a));
  const bytes = journals.reduce((sum, stream) => sum + stream.bytes, 0);
  const found = `${journals.length} hold ${formatBytes(bytes)}`;
  if (fullest === undefined || share(fullest) < JOURNAL_NEARLY) return ok(name, found);
  const percent = Math.floor(share(fullest) * 100);
  const advice = "check that its shard has an owner, which snapshots it and frees room";
  return warn(name, `${found}; ${fullest.name} is ${percent} % full`, advice);
}

async function journalStreams(
  manager: JetStreamManager,
  job: string,
): Promise<{ name: string; bytes: number; limitBytes: number }[]> {
  const isJournal = new RegExp(`^PS_${job}_\\d`);
  const journals: StreamInfo[] = [];
  for await (const stream of manager.streams.list(`ps.${job}.log.>`)) {
    if (isJournal.test(stream.config.name)) journals.push(stream);
  }
  return journals.map(({ config, state }) => ({
    name: config.name,
    bytes: state.bytes,
    limitBytes: config.max_bytes,
  }));
}
