import { setTimeout as delay } from "node:timers/promises";
import {
  AckPolicy,
  type Consumer,
  type ConsumerConfig,
  type ConsumerInfo,
  DiscardPolicy,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos, nuid, TimeoutError } from "@nats-io/transport-node";
import {
  type ErrorDetails,
  JETSTREAM_ERRORS,
  type JobSubjects,
  PserverError,
} from "../../protocol/index.ts";
import {
  fromBrokerError,
  isUnknownConsumer,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";

/**
 * Whether the broker holds a stream of this name.
 * @throws the JetStream client's error if the broker does not say.
 */
export async function streamExists(manager: JetStreamManager, stream: string): Promise<boolean> {
  return (await unlessMissing(() => manager.streams.info(stream))) !== undefined;
}

/**
 * Creates a stream on file that refuses messages beyond its limits, unless it exists. An existing one is not
 * requested again: a broker that has less storage than it has promised would refuse that.
 * @returns the configuration of one that existed; undefined if it was created.
 * @throws the JetStream client's error if the broker does not create it.
 */
export async function ensureFileStream(
  manager: JetStreamManager,
  config: Pick<StreamConfig, "name" | "subjects" | "num_replicas"> & Partial<StreamConfig>,
): Promise<StreamConfig | undefined> {
  const present = await unlessMissing(() => manager.streams.info(config.name));
  if (present !== undefined) return present.config;
  try {
    await manager.streams.add({
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      allow_direct: true,
      ...config,
    });
    return undefined;
  } catch (error) {
    // Somebody else has made it in between, in a slightly different way.
    if (jetStreamErrorCode(error) !== JETSTREAM_ERRORS.STREAM_NAME_IN_USE) throw error;
    return (await manager.streams.info(config.name)).config;
  }
}

/**
 * Deletes a stream unless it is gone already; returns whether it existed.
 * @throws the JetStream client's error if the broker does not delete it.
 */
export async function deleteStream(
  { streams }: { readonly streams: Pick<JetStreamManager["streams"], "delete"> },
  name: string,
): Promise<boolean> {
  return (await unlessMissing(() => streams.delete(name))) ?? false;
}

/** A stream by its name, and when it was made: that tells it from another one of the same name. */
export interface MadeStream {
  readonly name: string;
  readonly created: string;
}

/**
 * Deletes a stream unless it is gone already; returns whether it existed. The broker deletes by name, so it is looked
 * at directly before.
 * @throws BUSY if another stream has the name by now; the JetStream client's error if the broker does not delete it.
 */
export async function deleteStreamAsMade(
  { streams }: { readonly streams: Pick<JetStreamManager["streams"], "info" | "delete"> },
  { name, created }: MadeStream,
): Promise<boolean> {
  const deleted = await unlessMissing(async () => {
    const received = (await streams.info(name)).created;
    if (received === created) return await streams.delete(name);
    const text = `stream ${name}: expected that of ${created}; received one of ${received}`;
    throw new PserverError("BUSY", `${text}: its name has been used again`, {
      ...{ stream: name, expected: created, received },
    });
  });
  return deleted ?? false;
}

/** Returns the result of `request`; undefined if the broker says that there is no such stream. */
export async function unlessMissing<Result>(
  request: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await request();
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return undefined;
    throw error;
  }
}

/** Returns the result of `run`. @throws the error that `fromBrokerError` makes of its error, naming the action. */
export async function brokerCall<Result>(
  action: string,
  details: ErrorDetails,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw fromBrokerError(error, action, details);
  }
}

/** Silence after which the broker is asked whether it can give a next message at all. */
const STALL_MS = 2_000;

/** How many messages are requested at first; on a fast link soon more. */
const FIRST_MESSAGES = 2;

/** How many small messages, or subjects without payloads, are requested at a time. */
const BATCH_MESSAGES = 1_000;

/** What {@link readStream} reads, and how. */
export interface StreamRead {
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly stream: string;
  /** Which messages to read: on a subject, from a sequence or a time on, perhaps without payloads. */
  readonly select: Pick<
    Partial<ConsumerConfig>,
    "filter_subject" | "deliver_policy" | "opt_start_seq" | "opt_start_time" | "headers_only"
  >;
  /** Sequence to read up to at least; without it, to the end of the stream. */
  readonly toSeq?: number;
  /** How many messages are requested, and held in memory, at a time; {@link BATCH_MESSAGES} by default. */
  readonly batchMessages?: number;
  /** How long the broker may deliver nothing while there are more messages. */
  readonly timeoutMs: number;
  /** Whether to leave out messages that the broker does not deliver in that time, instead of failing. */
  readonly isLossy?: boolean;
  /** The action and its object, for errors. */
  readonly action: string;
  readonly details: ErrorDetails;
}

/** How long a broker may take to make a consumer before another one is made, too; then twice as long. */
const ANOTHER_AFTER_MS = 1_000;

/** Consumers that are made at one time. */
const CONSUMERS_MAX = 3;

/**
 * Makes a consumer that is kept once; returns the first that the broker has made. A cluster may give one to a broker
 * that has just died, and say nothing. So while there is no answer another one is made, which it may give to another
 * broker; one that is not used expires.
 * @param config of each consumer, with a new name.
 * @throws the first error of the broker.
 */
export async function makeConsumer(
  manager: Pick<JetStreamManager, "consumers">,
  stream: string,
  config: () => Partial<ConsumerConfig>,
): Promise<ConsumerInfo> {
  const timers: NodeJS.Timeout[] = [];
  try {
    return await new Promise((resolve, reject) => {
      for (let i = 0; i < CONSUMERS_MAX; i++) {
        const make = (): void => {
          const kept = { mem_storage: true, num_replicas: 1 };
          manager.consumers.add(stream, { ...config(), ...kept }).then(resolve, reject);
        };
        if (i === 0) make();
        else timers.push(setTimeout(make, (2 ** i - 1) * ANOTHER_AFTER_MS));
      }
    });
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}

/**
 * Reads messages of a stream in order, in batches; requests each batch after the last one was used. Leaves out messages
 * that are damaged in the broker's files, which it counts and never delivers.
 * @throws TIMEOUT if none comes in time, or one was lost on its way; the errors of `fromBrokerError`.
 */
export async function* readStream(
  read: StreamRead,
): AsyncGenerator<readonly JsMsg[], void, undefined> {
  const { manager, client, stream, timeoutMs, action, details } = read;
  try {
    const info = await makeConsumer(manager, stream, () => ({
      ...read.select,
      // A consumer with a name needs only the permission of a journal's reader.
      name: `read-${nuid.next()}`,
      ack_policy: AckPolicy.None,
      inactive_threshold: nanos(2 * timeoutMs),
    }));
    try {
      yield* fetchAll(client.consumers.getConsumerFromInfo(info), info, read);
    } finally {
      // If it cannot be deleted, for lack of a connection or a permission, it expires soon.
      await manager.consumers.delete(stream, info.name).catch(() => undefined);
    }
  } catch (error) {
    throw fromBrokerError(error, action, details);
  }
}

/** Pause before a consumer that the broker does not know yet is asked again. */
const UNKNOWN_MS = 50;

/**
 * Returns what a new consumer answers. One that another broker of a cluster keeps is not known at once to the broker
 * that is asked, which says that nobody is there: then it is asked again until `endsAtMs`, by `performance.now()`.
 * @throws what `ask` throws.
 */
export async function askConsumer<Answer>(
  ask: () => Promise<Answer>,
  endsAtMs: number,
): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnknownConsumer(error) || performance.now() + UNKNOWN_MS >= endsAtMs) throw error;
      await delay(UNKNOWN_MS);
    }
  }
}

async function* fetchAll(
  consumer: Consumer,
  { num_pending: pendingAtFirst, delivered: { stream_seq: beforeSeq } }: ConsumerInfo,
  read: StreamRead,
): AsyncGenerator<readonly JsMsg[], void, undefined> {
  const { stream, toSeq, batchMessages = BATCH_MESSAGES, timeoutMs, isLossy = false } = read;
  let [pending, delivered, seq, heardAtMs] = [pendingAtFirst, 0, beforeSeq, performance.now()];
  let wanted = Math.min(FIRST_MESSAGES, batchMessages);
  while (toSeq === undefined ? pending > 0 : seq < toSeq) {
    // The whole batch is taken at once: if its reader were slow, it would expire and lose messages.
    const batch: JsMsg[] = [];
    const expires = Math.min(timeoutMs, STALL_MS);
    const options = { max_messages: wanted, expires };
    const askedAtMs = performance.now();
    await askConsumer(async () => {
      for await (const message of await consumer.fetch(options)) {
        batch.push(message);
        heardAtMs = performance.now();
        ({ pending, streamSequence: seq } = message.info);
        delivered += 1;
        if (message.info.deliverySequence !== delivered) {
          throw new PserverError("TIMEOUT", `stream ${stream}: a message was lost on its way`);
        }
        if (pending === 0) break;
      }
    }, heardAtMs + timeoutMs);
    // What has not come when a request expires is lost, so a slow link is asked for less at a time.
    const tookMs = performance.now() - askedAtMs;
    if (tookMs < expires / 8) wanted = Math.min(wanted * 4, batchMessages);
    else if (tookMs > expires / 2) wanted = Math.ceil(wanted / 2);
    if (batch.length > 0) {
      yield batch;
      // The time for which its reader used it is no silence of the broker.
      heardAtMs = performance.now();
    } else if (toSeq === undefined && !(await hasNext(read, seq + 1))) return;
    else if (performance.now() - heardAtMs >= timeoutMs) {
      if (isLossy) return;
      throw new TimeoutError();
    }
  }
}

/** Whether the broker can give a message that is to be read from a sequence on; a damaged one is no such message. */
async function hasNext(
  { manager, stream, select: { filter_subject: subject = ">" } }: StreamRead,
  fromSeq: number,
): Promise<boolean> {
  try {
    const query = { seq: fromSeq, next_by_subj: subject };
    return (await manager.streams.getMessage(stream, query)) !== null;
  } catch (error) {
    if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return false;
    throw error;
  }
}

/** Limit of the age of a probe, which exists as long as two requests take; an older one was left behind. */
const PROBE_MS_MAX = 10_000;

/** Pause while another host's probe exists. */
const RETRY_MS = 50;

const ACTION = "asking the broker for space";

/**
 * Finds out whether the broker can reserve so many bytes, by creating a stream with that limit and deleting it. All
 * hosts of a job use one stream name, so a host that dies in between leaves at most this one stream behind, and the
 * next probe deletes it.
 * @throws TIMEOUT, NO_JETSTREAM and the like if the broker does not say.
 */
export async function probeStorage(
  manager: JetStreamManager,
  subjects: JobSubjects,
  storage: "file" | "memory",
  bytes: number,
  probeMsMax: number = PROBE_MS_MAX,
): Promise<boolean> {
  const name = subjects.storageProbeStream();
  const started = performance.now();
  let refusals = 0;
  let hasRemoved = false;
  try {
    for (;;) {
      const waitedMs = performance.now() - started;
      try {
        await manager.streams.add({
          name,
          subjects: [subjects.storageProbe()],
          storage: storage === "file" ? StorageType.File : StorageType.Memory,
          max_bytes: bytes,
        });
        // Another host with the same question may have deleted it already.
        await deleteStream(manager, name);
        return true;
      } catch (error) {
        const isBlocked =
          (waitedMs <= probeMsMax && isBeingDeleted(error)) ||
          (await isBlockedByProbe(manager, name, error));
        // Another probe may have been deleted before this host looked for it: two refusals are needed.
        refusals = isBlocked ? 0 : refusals + 1;
        if (refusals === 2) throw error;
      }
      // A slow broker alone is no reason to give up: a probe that was left behind must have been removed first.
      if (hasRemoved && waitedMs > 2 * probeMsMax) {
        const message = `other hosts of job ${subjects.job} ask for space all the time`;
        throw new PserverError("TIMEOUT", message, { timeoutMs: 2 * probeMsMax });
      }
      if (waitedMs > probeMsMax) {
        await deleteStream(manager, name);
        hasRemoved = true;
      } else await delay(RETRY_MS);
    }
  } catch (error) {
    const found = fromBrokerError(error, ACTION);
    if (found.code === "NO_SPACE") return false;
    // A broker of a cluster may have been given the stream that is away, and would make it later.
    if (found.code === "TIMEOUT") await deleteStream(manager, name).catch(() => undefined);
    throw found;
  }
}

/**
 * Whether the attempt failed because of an existing probe, which has another limit or takes up the space. It belongs
 * to a host that probes at this moment, or to one that died.
 * @throws `error` if it has another reason.
 */
async function isBlockedByProbe(
  manager: JetStreamManager,
  name: string,
  error: unknown,
): Promise<boolean> {
  if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NAME_IN_USE) return true;
  if (fromBrokerError(error, ACTION).code !== "NO_SPACE") throw error;
  return await streamExists(manager, name);
}

/** Whether the broker could not create the stream because it may still be deleting another probe's files. */
function isBeingDeleted(error: unknown): boolean {
  return jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_MADE;
}
