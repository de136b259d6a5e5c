import type { Fields } from "../../protocol/codec.ts";
import {
  GUARD_ACTIONS,
  type GuardAction,
  type Synchronization,
  toSynchronization,
} from "../../protocol/config/index.ts";
import type { WireError } from "../../protocol/errors.ts";
import {
  asMap,
  flagField,
  integerField,
  listField,
  mapField,
  textField,
} from "../../protocol/fields.ts";
import { SHARDS_MAX } from "../../protocol/limits.ts";
import { FATES } from "../../protocol/messages/contributions.ts";
import type { MembersRecord } from "../../protocol/messages/host-records.ts";
import {
  type Fallback,
  type Position,
  parseFallbacks,
  parsePosition,
} from "../../protocol/messages/position.ts";

/** A host that is alive, with everything else that it reports of itself. */
interface ListedHost {
  readonly id: string;
  readonly shards: readonly number[];
  readonly [more: string]: unknown;
}

/**
 * A shard as its owner sees it, with everything else that the owner reports; `unowned` if no owner answers.
 * The functions below read the rest of the report.
 */
export interface ListedShard {
  readonly shard: number;
  readonly state: string;
  readonly [more: string]: unknown;
}

/** What a job's trainers have declared, and the quotas. */
export interface Declared {
  readonly parameters: number;
  /** Bytes of values and optimizer state. */
  readonly heldBytes: number;
  readonly [more: string]: unknown;
}

/** An archiver that follows a job, with everything else that it reports of itself. */
export interface ListedArchiver {
  readonly machine: string;
  readonly pid: number;
  /** Time of its last report, by its own clock, in milliseconds since 1970. */
  readonly writtenMs: number;
  /** What the job had at this time, by the same clock, is archived; absent before that is known of any time. */
  readonly completeMs?: number;
  /** Why it has ended; absent while it runs, and where it could not say. */
  readonly failure?: Pick<WireError, "code" | "message">;
  /** By the shard's number, the last record that it has copied. */
  readonly shards: readonly { readonly record: Position }[];
  readonly [more: string]: unknown;
}

/** Size of a job's tape in the broker. */
export interface ListedTape {
  readonly messages: number;
  readonly bytes: number;
  /** Bytes beyond which the oldest lines are dropped. */
  readonly bytesMax: number;
  /** When the oldest lines were stored, in milliseconds since 1970, if older ones were dropped. */
  readonly trimmedToMs?: number;
}

/** A rewind of a job that is not complete: under way, or interrupted. */
export interface ListedRewind {
  readonly id: string;
  /** When it was begun, in milliseconds since 1970. */
  readonly begunMs: number;
  /** Position of each shard to which it goes back. */
  readonly at: readonly Position[];
  /** Numbers of the shards that have gone back. */
  readonly goneBack: readonly number[];
}

/** Copies of a job's streams in a cluster. */
export interface ListedReplicas {
  /** Copies of each stream that the job asks for. */
  readonly wanted: number;
  /** Brokers that hold copies and cannot be reached. */
  readonly missing: readonly string[];
  /** Streams with fewer copies that can be reached and are not behind; 0 without a leader. */
  readonly lacking: readonly { readonly stream: string; readonly copies: number }[];
}

/** Who takes part in a job. */
export interface Participants {
  readonly hosts: readonly ListedHost[];
  readonly trainers: readonly string[];
  readonly shards: readonly ListedShard[];
  readonly declared: Declared;
  /** Archivers that have registered themselves. */
  readonly archivers: readonly ListedArchiver[];
  /** Archivers that have stopped in the last days, and for which hosts wait no more. */
  readonly stoppedArchivers: readonly ListedArchiver[];
  /** Absent if the job has no tape, or the broker does not say. */
  readonly tape?: ListedTape;
  /** Absent if there is none. */
  readonly rewind?: ListedRewind;
  /** Absent if the job asks for one copy, or the broker does not say. */
  readonly replicas?: ListedReplicas;
  /** How the job's trainers keep step. */
  readonly synchronization: Synchronization;
  /** The members of steps; absent in a job whose trainers do not keep step. */
  readonly members?: ListedMembers;
}

/** The members of a job's steps. */
type ListedMembers = Omit<MembersRecord, "verb">;

const LISTED_MAX = 100_000;

/** @throws BAD_MESSAGE if the fields are not a valid reply to `hosts`. */
export function parseParticipants(fields: Fields): Participants {
  return {
    hosts: listField(fields, "hosts", LISTED_MAX).map(parseHost),
    trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
    shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
    declared: parseDeclared(fields["declared"]),
    archivers: parseArchivers(fields, "archivers"),
    stoppedArchivers: parseArchivers(fields, "stoppedArchivers"),
    ...(fields["tape"] === undefined ? {} : { tape: parseTape(fields["tape"]) }),
    ...(fields["rewind"] === undefined ? {} : { rewind: parseRewind(fields["rewind"]) }),
    ...(fields["replicas"] === undefined ? {} : { replicas: parseReplicas(fields["replicas"]) }),
    synchronization: toSynchronization(fields["synchronization"]),
    ...(fields["members"] === undefined ? {} : { members: parseMembers(fields["members"]) }),
  };
}

function parseDeclared(value: unknown): Declared {
  const fields = asMap(value, "declared");
  return {
    ...fields,
    parameters: integerField(fields, "parameters"),
    heldBytes: integerField(fields, "heldBytes"),
  };
}

function parseTape(value: unknown): ListedTape {
  const fields = asMap(value, "tape");
  return {
    messages: integerField(fields, "messages"),
    bytes: integerField(fields, "bytes"),
    bytesMax: integerField(fields, "bytesMax"),
    ...(fields["trimmedToMs"] !== undefined && {
      trimmedToMs: integerField(fields, "trimmedToMs"),
    }),
  };
}

function parseRewind(value: unknown): ListedRewind {
  const fields = asMap(value, "rewind");
  return {
    id: textField(fields, "id"),
    begunMs: integerField(fields, "begunMs"),
    at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
    goneBack: listField(fields, "goneBack", SHARDS_MAX).map((shard) =>
      integerField({ shard }, "shard", 0, SHARDS_MAX - 1),
    ),
  };
}

function parseReplicas(value: unknown): ListedReplicas {
  const fields = asMap(value, "replicas");
  return {
    wanted: integerField(fields, "wanted"),
    missing: listField(fields, "missing", LISTED_MAX).map((name) => textField({ name }, "name")),
    lacking: listField(fields, "lacking", LISTED_MAX).map((each) => {
      const lacking = asMap(each, "lacking");
      return { stream: textField(lacking, "stream"), copies: integerField(lacking, "copies") };
    }),
  };
}

/** Describes for people which copies of a job's streams are missing; undefined if all are there. */
export function describeLackingReplicas(replicas: ListedReplicas | undefined): string | undefined {
  if (replicas === undefined || replicas.lacking.length === 0) return undefined;
  const { wanted, missing, lacking } = replicas;
  const leaderless = lacking.filter(({ copies }) => copies === 0).length;
  const least = Math.min(...lacking.map(({ copies }) => copies));
  const streams = lacking.length === 1 ? lacking[0]?.stream : `${lacking.length} streams`;
  const parts = [
    `${streams}: ${least} of ${wanted} copies`,
    ...(leaderless > 0 ? [`${leaderless} without a leader, which store nothing`] : []),
    ...(missing.length > 0 ? [`not reached: ${missing.join(", ")}`] : []),
  ];
  return parts.join("; ");
}

function parseArchivers(reply: Fields, name: string): ListedArchiver[] {
  return listField(reply, name, LISTED_MAX).map((value) => {
    const { completeMs, failure, ...fields } = asMap(value, "archiver");
    return {
      ...fields,
      ...(completeMs !== undefined && { completeMs: integerField({ completeMs }, "completeMs") }),
      ...(failure !== undefined && { failure: parseFailure(failure) }),
      machine: textField(fields, "machine"),
      pid: integerField(fields, "pid"),
      writtenMs: integerField(fields, "writtenMs"),
      shards: listField(fields, "shards", SHARDS_MAX).map((shard) => {
        const { record } = asMap(shard, "shard");
        const position = asMap(record, "record");
        const generation = integerField(position, "generation");
        return { record: { generation, seq: integerField(position, "seq") } };
      }),
    };
  });
}

function parseFailure(value: unknown): Pick<WireError, "code" | "message"> {
  const fields = asMap(value, "failure");
  return { code: textField(fields, "code"), message: textField(fields, "message") };
}

function parseMembers(value: unknown): ListedMembers {
  const fields = asMap(value, "members");
  return {
    revision: integerField(fields, "revision"),
    started: flagField(fields, "started"),
    trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
  };
}

function parseHost(value: unknown): ListedHost {
  const { host: _id, ...more } = asMap(value, "host");
  const shards = listField(more, "shards", SHARDS_MAX).map((shard) =>
    integerField({ shard }, "shard", 0, SHARDS_MAX - 1),
  );
  return { ...more, id: textField(asMap(value, "host"), "host"), shards };
}

function parseShard(value: unknown): ListedShard {
  const fields = asMap(value, "shard");
  const shard = integerField(fields, "shard", 0, SHARDS_MAX - 1);
  return { ...fields, shard, state: textField(fields, "state") };
}

/** Records of one trainer that changed nothing, in all shards together. */
export interface TrainerRejections {
  readonly trainer: string;
  /** Rejected records of its present session, less the applied ones. */
  readonly rejected: number;
  readonly unreadable: number;
}

/** What became of the records that change blocks. */
export interface UpdateCounts {
  /** Changes of blocks since their `init`, in all shards that report them. */
  readonly applied: number;
  /** Records rejected since the present owners serve their shards. */
  readonly rejected: number;
  /** Records that guards have rejected, clipped or set aside since then. */
  readonly guarded: Readonly<Record<GuardAction, number>>;
  /** Shards that do not serve or do not report: what was applied there is not known. */
  readonly silent: readonly number[];
}

/** Most trainers that one shard names. */
const ROWS_MAX = 1_000;

/** Groups the shards that do not serve at the moment by their state. */
export function idleShards(shards: readonly ListedShard[]): Map<string, number[]> {
  const idle = new Map<string, number[]>();
  for (const { shard, state } of shards) {
    if (state !== "serving") idle.set(state, [...(idle.get(state) ?? []), shard]);
  }
  return idle;
}

/** Lists the shards that lost records when their journal was replaced, with what they lost. */
export function fallenBack(
  shards: readonly ListedShard[],
): { readonly shard: number; readonly fallbacks: readonly Fallback[] }[] {
  return shards.flatMap((listed) => {
    const fallbacks = parseFallbacks(listed).filter(({ from, to }) => to >= from);
    return fallbacks.length === 0 ? [] : [{ shard: listed.shard, fallbacks }];
  });
}

/** Counts of records whose lines a shard's owner has not written, or not as it should. */
export interface ListedTapeGaps {
  readonly shard: number;
  readonly undescribed: number;
  /** Records whose lines could not be stored. */
  readonly leftOut: number;
  /** Records of trainers that had used up their shares of the tape. */
  readonly thinned: number;
}

/** Lists the shards whose tape lacks lines, with their counts of such records. */
export function tapeGaps(shards: readonly ListedShard[]): ListedTapeGaps[] {
  return shards.flatMap(({ shard, tape }) => {
    if (tape === undefined) return [];
    const fields = asMap(tape, "tape");
    const undescribed = integerField(fields, "undescribed");
    const leftOut = integerField(fields, "leftOut");
    const thinned = integerField(fields, "thinned");
    const isWhole = undescribed + leftOut + thinned === 0;
    return isWhole ? [] : [{ shard, undescribed, leftOut, thinned }];
  });
}

/** A broker's copy of the journal of a shard that the shard's owner has found to be damaged. */
export interface DamagedReplica {
  readonly broker: string;
  readonly shard: number;
  /** The first and the last record that the copy lacks or has with other bytes. */
  readonly from: number;
  readonly to: number;
  /** Whether the copy has other records than were folded, which are sound by themselves. */
  readonly isOther: boolean;
}

/** Lists the damaged copies of journals, by broker and shard; @throws BAD_MESSAGE if one is malformed. */
export function damagedReplicas(shards: readonly ListedShard[]): DamagedReplica[] {
  const replicas = shards.flatMap((listed) => {
    const { shard } = listed;
    if (listed["damagedReplicas"] === undefined) return [];
    return listField(listed, "damagedReplicas", ROWS_MAX).map((value) => {
      const fields = asMap(value, "replica");
      const [from, to] = [integerField(fields, "from", 1), integerField(fields, "to", 1)];
      const isOther = flagField(fields, "isOther");
      return { broker: textField(fields, "broker"), shard, from, to, isOther };
    });
  });
  return replicas.sort((a, b) => a.broker.localeCompare(b.broker) || a.shard - b.shard);
}

/**
 * Returns the last step that has closed in every shard, and the last one that has closed in any: each shard
 * closes a step by itself. Undefined if no shard reports steps.
 */
export function closedSteps(
  shards: readonly ListedShard[],
): { readonly everywhere: number; readonly anywhere: number } | undefined {
  const closed = shards.flatMap(({ steps }) =>
    steps === undefined ? [] : [integerField(asMap(steps, "steps"), "closed")],
  );
  if (closed.length === 0) return undefined;
  return { everywhere: Math.min(...closed), anywhere: Math.max(...closed) };
}

/** What the shards of a job whose trainers contribute to fragments report of the rounds, added up. */
interface RoundCounts {
  readonly fragments: number;
  readonly closed: number;
  /** Contributions: complete ones, and what became of them. */
  readonly processed: number;
  readonly merged: number;
  readonly late: number;
  readonly dropped: number;
}

const ROUND_COUNTS = ["fragments", "closed"] as const;

/** Adds up the rounds of a job, as its shards report them; @throws BAD_MESSAGE if one is malformed. */
export function roundsOf(shards: readonly ListedShard[]): RoundCounts {
  const counts = { fragments: 0, closed: 0, processed: 0, merged: 0, late: 0, dropped: 0 };
  for (const { rounds } of shards) {
    if (rounds === undefined) continue;
    const fields = asMap(rounds, "rounds");
    for (const key of ROUND_COUNTS) counts[key] += integerField(fields, key);
    for (const fate of FATES) {
      counts[fate] += integerField(mapField(fields, fate), "contributions");
    }
  }
  return counts;
}

/** Adds up the updates of a job, as its shards report them; @throws BAD_MESSAGE if one is malformed. */
export function updatesOf(shards: readonly ListedShard[]): UpdateCounts {
  let [applied, rejected] = [0, 0];
  const guarded = { reject: 0, clip: 0, "set-aside": 0 };
  const silent: number[] = [];
  for (const { shard, state, updates } of shards) {
    // A shard that is catching up has not yet applied all that was acknowledged before.
    if (state !== "serving" || updates === undefined) silent.push(shard);
    else {
      const counts = asMap(updates, "updates");
      applied += integerField(counts, "applied");
      rejected += integerField(counts, "rejected");
      const by = mapField(counts, "guarded");
      for (const action of GUARD_ACTIONS) guarded[action] += integerField(by, action);
    }
  }
  return { applied, rejected, guarded, silent };
}

/**
 * Adds up, for each trainer, the records that changed nothing, the most first. Each shard names only its
 * worst trainers.
 */
export function rejectionsByTrainer(shards: readonly ListedShard[]): TrainerRejections[] {
  const byTrainer = new Map<string, TrainerRejections>();
  const count = (fields: Fields, key: string, kind: "rejected" | "unreadable"): void => {
    for (const [trainer, records] of countRows(fields, key)) {
      const known = byTrainer.get(trainer) ?? { trainer, rejected: 0, unreadable: 0 };
      byTrainer.set(trainer, { ...known, [kind]: known[kind] + records });
    }
  };
  for (const { senders } of shards) {
    if (senders === undefined) continue;
    const fields = asMap(senders, "senders");
    count(fields, "refusedOf", "rejected");
    count(fields, "unreadableOf", "unreadable");
  }
  const total = ({ rejected, unreadable }: TrainerRejections): number => rejected + unreadable;
  return [...byTrainer.values()].sort((a, b) => total(b) - total(a));
}

/**
 * Counts the records that an archiver has not copied, of the shards that are served. Of a shard with a new
 * generation, only the records of that generation count.
 */
export function archiverLag(
  { shards: archived }: ListedArchiver,
  shards: readonly ListedShard[],
): number {
  let records = 0;
  for (const { shard, state, generation, seq } of shards) {
    if (state !== "serving" || typeof seq !== "number") continue;
    const { record } = archived[shard] ?? { record: { generation: 0, seq: 0 } };
    records += Math.max(0, seq - (record.generation === generation ? record.seq : 0));
  }
  return records;
}

/** Length of the silence after which an archiver is taken to have stopped; it renews its registration more often. */
const SILENCE_MS = 30_000;

/** Age of the newest complete copy from which on an archiver lags; it looks for new records every second. */
const LAG_MS = 60_000;

/** How an archiver is, as its last report tells. */
export interface ArchiverState {
  /** Why it has ended, by its own word. */
  readonly failure?: Pick<WireError, "code" | "message">;
  /** How long nothing has been heard of it, if that is too long. */
  readonly silentMs?: number;
  /** How much older than its last report the newest complete copy is, if that is too much. */
  readonly lagMs?: number;
}

/** Returns what is wrong with an archiver at a time, by the wall clock of this machine; nothing if it keeps up. */
export function archiverState(
  { writtenMs, completeMs, failure }: ListedArchiver,
  nowMs: number,
): ArchiverState {
  const silentMs = nowMs - writtenMs;
  const lagMs = completeMs === undefined ? 0 : writtenMs - completeMs;
  return {
    ...(failure && { failure }),
    ...(silentMs >= SILENCE_MS && { silentMs }),
    ...(lagMs >= LAG_MS && { lagMs }),
  };
}

function countRows(fields: Fields, key: string): [trainer: string, records: number][] {
  if (fields[key] === undefined) return [];
  return listField(fields, key, ROWS_MAX).map((value) => {
    const row: Fields = { ...listField({ [key]: value }, key, 2) };
    return [textField(row, "0"), integerField(row, "1")];
  });
}
