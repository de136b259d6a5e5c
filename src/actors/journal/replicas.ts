import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos, nuid } from "@nats-io/transport-node";
import { PserverError } from "../../protocol/index.ts";
import { type ChangedRecords, changedRecordsOf } from "../fold/journal-checksum.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import { askConsumer, makeConsumer } from "./streams.ts";

/** Damage in one broker's copy of a journal: records that it lacks, or has with other bytes than other copies do. */
export interface ReplicaDamage extends ChangedRecords {
  /** Name of the broker, `server_name` in its configuration. */
  readonly broker: string;
  /**
   * Whether the copy has other records than were folded, which are sound by themselves: brokers that lost records with
   * their power have stored others under the same numbers, and this one has kept the former ones.
   */
  readonly isOther: boolean;
}

/** Returns the error by which a host tells of a damaged copy; the shard goes on with another one. */
export function replicaDamaged(
  shard: number,
  generation: number,
  { broker, from, to, isOther }: ReplicaDamage,
): PserverError {
  const records = from === to ? `record ${from}` : `records ${from} to ${to}`;
  const what = isOther
    ? "has other records of the journal than were folded; updates that others lost may be there"
    : "has a damaged copy of the journal";
  const text = `shard ${shard}: broker ${broker} ${what}: ${records} of generation ${generation}`;
  return new PserverError("JOURNAL_DAMAGED", text, { shard, broker, generation, from, to });
}

/**
 * Returns what an error of the fold says about the copy that was folded; undefined unless the error is that records
 * are not those that were folded before.
 */
export function replicaDamageOf(error: PserverError, broker: string): ReplicaDamage | undefined {
  const changed = changedRecordsOf(error);
  return changed === undefined ? undefined : { broker, ...changed, isOther: true };
}

/**
 * How often a consumer is made to get it onto another broker. A broker is chosen at random: with two of three to be
 * avoided, 40 attempts miss the third once in ten million times.
 */
const PLACEMENTS_MAX = 40;

/** A consumer, and the broker whose copy of the stream it reads. */
export interface PlacedConsumer {
  readonly info: ConsumerInfo;
  /** Name of the broker; undefined for one that belongs to no cluster. */
  readonly broker: string | undefined;
}

/**
 * Makes a consumer that is kept by one broker, and so reads that broker's copy of the stream. The cluster chooses
 * the broker; consumers on one of `avoided` are removed and made again. If the cluster offers no other broker, the
 * consumer is on an avoided one.
 * @param config of each consumer, with a new name: the removal of the last one may still be on its way to the broker of
 * the next one.
 * @throws the JetStream client's errors.
 */
export async function placeConsumer(
  manager: Pick<JetStreamManager, "consumers">,
  stream: string,
  config: () => Partial<ConsumerConfig>,
  avoided: ReadonlySet<string>,
): Promise<PlacedConsumer> {
  for (let attempt = 1; ; attempt++) {
    const info = await makeConsumer(manager, stream, config);
    const broker = info.cluster?.leader;
    const isWanted = broker === undefined || !avoided.has(broker);
    if (isWanted || attempt === PLACEMENTS_MAX) return { info, broker };
    // If it cannot be removed, it expires soon.
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
  }
}

/** How long a broker's copy may take to deliver a message that is asked for by itself. */
const COPY_MS = 2_000;

/**
 * Reads one message of a stream from the copies of all brokers in turn, until one `isSound`; undefined if none is, or
 * the broker belongs to no cluster. A copy that does not deliver the message within two seconds has none.
 * @throws the JetStream client's errors.
 */
export async function soundCopy(
  manager: JetStreamManager,
  stream: string,
  seq: number,
  isSound: (message: JournalRecord) => boolean,
): Promise<JournalRecord | undefined> {
  const asked = new Set<string>();
  for (;;) {
    const config = (): Partial<ConsumerConfig> => ({
      name: `copy-${nuid.next()}`,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: seq,
      inactive_threshold: nanos(2 * COPY_MS),
    });
    const { info, broker } = await placeConsumer(manager, stream, config, asked);
    if (broker === undefined || asked.has(broker)) return undefined;
    asked.add(broker);
    const consumer = manager.jetstream().consumers.getConsumerFromInfo(info);
    const endsAtMs = performance.now() + COPY_MS;
    const found = await askConsumer(() => consumer.next({ expires: COPY_MS }), endsAtMs);
    await manager.consumers.delete(stream, info.name).catch(() => undefined);
    if (found?.seq !== seq) continue;
    const message = { seq, subject: found.subject, payload: found.data };
    if (isSound(message)) return message;
  }
}
