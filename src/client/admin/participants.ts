import type { Fields } from "../../protocol/codec.ts";
import { type Synchronization, toSynchronization } from "../../protocol/config/index.ts";
import { asMap, flagField, integerField, listField, textField } from "../../protocol/fields.ts";
import type { MembersRecord } from "../../protocol/host-records.ts";
import { SHARDS_MAX } from "../../protocol/limits.ts";
import type { Position } from "../../protocol/position.ts";

/** A host that is alive, with everything else that it tells of itself. */
export interface ListedHost {
  readonly id: string;
  readonly shards: readonly number[];
  readonly [more: string]: unknown;
}

/**
 * A shard as its owner sees it, with everything else that the owner tells of it; `unowned` if no owner
 * answers. What is told is read by the functions of `shard-reports.ts`.
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

/** An archiver that follows a job, with everything else that it tells of itself. */
export interface ListedArchiver {
  readonly machine: string;
  readonly pid: number;
  /** When it was last heard of, by its own clock, in milliseconds since 1970. */
  readonly writtenMs: number;
  /** By the shard's number, the last record that it has copied. */
  readonly shards: readonly { readonly record: Position }[];
  readonly [more: string]: unknown;
}

/** What a job's tape takes in the broker. */
export interface ListedTape {
  readonly messages: number;
  readonly bytes: number;
}

/** Who takes part in a job. */
export interface Participants {
  readonly hosts: readonly ListedHost[];
  readonly trainers: readonly string[];
  readonly shards: readonly ListedShard[];
  /** Absent in replies of older hosts. */
  readonly declared?: Declared;
  /** Archivers that have registered themselves; absent in replies of older hosts. */
  readonly archivers?: readonly ListedArchiver[];
  /** Absent of a job without a tape, where the broker does not tell, and in replies of older hosts. */
  readonly tape?: ListedTape;
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
    ...(fields["declared"] === undefined ? {} : { declared: parseDeclared(fields["declared"]) }),
    ...(fields["archivers"] === undefined ? {} : { archivers: parseArchivers(fields) }),
    ...(fields["tape"] === undefined ? {} : { tape: parseTape(fields["tape"]) }),
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
  return { messages: integerField(fields, "messages"), bytes: integerField(fields, "bytes") };
}

function parseArchivers(reply: Fields): ListedArchiver[] {
  return listField(reply, "archivers", LISTED_MAX).map((value) => {
    const fields = asMap(value, "archiver");
    return {
      ...fields,
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
