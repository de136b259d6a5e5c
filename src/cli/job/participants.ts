import type { Fields } from "../../protocol/codec.ts";
import { type Synchronization, toSynchronization } from "../../protocol/config/index.ts";
import { type Fallback, parseFallbacks } from "../../protocol/fallback.ts";
import { asMap, flagField, integerField, listField, textField } from "../../protocol/fields.ts";
import { SHARDS_MAX } from "../../protocol/limits.ts";
import { type Declared, parseDeclared } from "./senders.ts";

/** A host that is alive, with what else it said of itself. */
export interface ListedHost {
  readonly id: string;
  readonly shards: readonly number[];
  readonly [more: string]: unknown;
}

/** A shard as its owner sees it, or `unowned` if none answers, with what else was said of it. */
export interface ListedShard {
  readonly shard: number;
  readonly state: string;
  readonly [more: string]: unknown;
}

/** Who takes part in a job. */
export interface Participants {
  readonly hosts: readonly ListedHost[];
  readonly trainers: readonly string[];
  readonly shards: readonly ListedShard[];
  /** What is declared; hosts of before do not tell. */
  readonly declared?: Declared;
  /** How the job's trainers keep step. */
  readonly synchronization: Synchronization;
  /** Who keeps step; absent in a job whose trainers do not. */
  readonly members?: ListedMembers;
}

/** The members of a job's steps. */
export interface ListedMembers {
  readonly revision: number;
  /** Whether as many as the job asks for have been there at one time. */
  readonly started: boolean;
  readonly trainers: readonly string[];
}

const LISTED_MAX = 100_000;

/** @throws BAD_MESSAGE if the entries are no reply to `hosts`. */
export function parseParticipants(fields: Fields): Participants {
  return {
    hosts: listField(fields, "hosts", LISTED_MAX).map(parseHost),
    trainers: listField(fields, "trainers", LISTED_MAX).map((id) => textField({ id }, "id")),
    shards: listField(fields, "shards", SHARDS_MAX).map(parseShard),
    ...(fields["declared"] === undefined ? {} : { declared: parseDeclared(fields["declared"]) }),
    synchronization: toSynchronization(fields["synchronization"]),
    ...(fields["members"] === undefined ? {} : { members: parseMembers(fields["members"]) }),
  };
}

/** Shards that serve nothing at the moment, by their state. */
export function idleShards(shards: readonly ListedShard[]): Map<string, number[]> {
  const idle = new Map<string, number[]>();
  for (const { shard, state } of shards) {
    if (state !== "serving") idle.set(state, [...(idle.get(state) ?? []), shard]);
  }
  return idle;
}

/** Shards whose journal was replaced and that did not keep all of it, with what they lost. */
export function fallenBack(
  shards: readonly ListedShard[],
): { readonly shard: number; readonly fallbacks: readonly Fallback[] }[] {
  return shards.flatMap((listed) => {
    const fallbacks = parseFallbacks(listed).filter(({ from, to }) => to >= from);
    return fallbacks.length === 0 ? [] : [{ shard: listed.shard, fallbacks }];
  });
}

/**
 * The last step that has closed everywhere, and the last one anywhere: a step closes in each shard by
 * itself. Undefined while no shard tells.
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
