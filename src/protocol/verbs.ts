/** Verbs of trainers' journal records about one block; `clock`, `batch` and `note` name none. */
export const TRAINER_VERBS = ["init", "push", "set"] as const;
/** One of {@link TRAINER_VERBS}. */
export type TrainerVerb = (typeof TRAINER_VERBS)[number];

/** Verbs of hosts' journal records. */
export const HOST_VERBS = [
  "rules",
  "members",
  "declare",
  "drop",
  "floor",
  "sessions",
  "forget",
] as const;
/** One of {@link HOST_VERBS}. */
export type HostVerb = (typeof HOST_VERBS)[number];

/** Verbs of lifecycle requests. */
export const LIFECYCLE_VERBS = [
  "join",
  "renew",
  "leave",
  "begin",
  "declare",
  "create",
  "finish",
  "abort",
  "enter",
  "exit",
  "status",
] as const;
/** One of {@link LIFECYCLE_VERBS}. */
export type LifecycleVerb = (typeof LIFECYCLE_VERBS)[number];

/** Verbs of control requests; one host of the queue group answers. */
export const CONTROL_VERBS = ["save", "stop", "snapshot", "hosts", "versions"] as const;
/** One of {@link CONTROL_VERBS}. */
export type ControlVerb = (typeof CONTROL_VERBS)[number];

/** Verbs of requests that hosts send to the owner of a shard. */
export const OWNER_VERBS = [
  "check",
  "pull",
  "snapshot",
  "status",
  "memory",
  "versions",
  "trainers",
  "digest",
] as const;
/** One of {@link OWNER_VERBS}. */
export type OwnerVerb = (typeof OWNER_VERBS)[number];

/** Whether `text` is one of a list of words. */
export function isOneOf<Word extends string>(words: readonly Word[], text: string): text is Word {
  return (words as readonly string[]).includes(text);
}
