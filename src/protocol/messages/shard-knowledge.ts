import type { Fields } from "../codec.ts";
import { asMap, flagField, integerField, listField, textField } from "../fields.ts";
import { MEMBERS_MAX, PARAMETERS_PER_REQUEST_MAX } from "../limits.ts";
import {
  type GrantedParameter,
  type InitializedJob,
  parseGranted,
  parseInitializedJob,
} from "./host-records.ts";

/** A parameter that hosts have granted to one trainer. */
export interface DeclaredParameter extends GrantedParameter {
  /** The trainer that may initialize it. */
  readonly trainer: string;
  /** Present once hosts have told that it, created by itself, is initialized under this epoch. */
  readonly initialized?: true;
}

/** Reads a declared parameter in a reply or a saved state; @throws BAD_MESSAGE and the like. */
export function parseDeclared(value: unknown): DeclaredParameter {
  const fields = asMap(value, "declared");
  const declared = { ...parseGranted(fields), trainer: textField(fields, "trainer") };
  return fields["initialized"] === undefined ? declared : { ...declared, initialized: true };
}

/** The members of a job's steps, as a shard was told of them last. */
export interface KnownMembers {
  /** 0 before the first. */
  readonly revision: number;
  readonly started: boolean;
  readonly trainers: readonly string[];
}

/**
 * What a shard knows of its job from hosts' records: all of it is in the journal, and was written into an entry of
 * the job's bucket before.
 */
export interface ShardKnowledge {
  /** The job's initialization; absent if the shard was told of none. */
  readonly job?: InitializedJob;
  /** The highest session that hosts have given out, as a sweep has told the shard. */
  readonly sweptUpTo: number;
  readonly members: KnownMembers;
  /** Declared parameters, in order of the UTF-16 code units of their names. */
  readonly parameters: readonly DeclaredParameter[];
}

/** A page of what a shard knows. */
export interface KnowledgePage extends ShardKnowledge {
  /** Whether more parameters follow. */
  readonly more: boolean;
}

/** Returns the entries of a request for what a shard knows, with the parameters after a name; "" for the first. */
export function knowledgeRequest(after: string): Fields {
  return { after };
}

/** Reads the name after which an owner is asked for parameters; @throws BAD_MESSAGE. */
export function parseKnowledgeRequest(fields: Fields): string {
  return textField(fields, "after");
}

/** Returns the entries of the reply. */
export function knowledgeReply(page: KnowledgePage): Fields {
  return { ...page };
}

/** Reads a reply; @throws BAD_MESSAGE and the like. */
export function parseKnowledgeReply(fields: Fields): KnowledgePage {
  const members = asMap(fields["members"], "members");
  return {
    ...(fields["job"] === undefined
      ? {}
      : { job: parseInitializedJob(asMap(fields["job"], "job")) }),
    sweptUpTo: integerField(fields, "sweptUpTo"),
    members: {
      revision: integerField(members, "revision"),
      started: flagField(members, "started"),
      trainers: listField(members, "trainers", MEMBERS_MAX).map((id) => textField({ id }, "id")),
    },
    parameters: listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map(parseDeclared),
    more: flagField(fields, "more"),
  };
}

/** An entry of a job's bucket that is damaged, lost or older than what was done under it. */
export interface EntryProblem {
  readonly key: string;
  /** What was expected, and what was found. */
  readonly problem: string;
}
