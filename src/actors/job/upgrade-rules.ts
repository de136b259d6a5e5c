import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { asMap, type Fields, integerField, PserverError } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { CURRENT_RULES, UPGRADABLE_RULES_MIN } from "../fold/rules.ts";
import { OwnersClient } from "../host/owners-client.ts";
import { storageQueries } from "../journal/streams.ts";
import { BucketRecord } from "../lifecycle/lock.ts";
import { SETTINGS_KEY } from "./job-settings.ts";
import { openStoredJob } from "./open-job.ts";

const settingsRecord = new BucketRecord<Fields>(
  SETTINGS_KEY,
  (stored) => asMap(stored?.value, SETTINGS_KEY),
  (settings) => settings,
);

/** Options of {@link upgradeRules}. */
export interface RulesUpgradeOptions {
  /** As a host has one, with the host's inbox. */
  readonly connection: NatsConnection;
  readonly job: string;
  /** The id of the connection's inbox. */
  readonly host: string;
}

/** The versions of a job's rules before and after an upgrade. */
export interface RulesUpgrade {
  readonly job: string;
  readonly from: number;
  readonly to: number;
  readonly shards: number;
}

/**
 * Puts the present rules into force in every journal of a job, while it is served, and then notes them
 * in its settings, from which trainers that join learn what they may send. An upgrade that was
 * interrupted is completed by another one; in a job that has the present rules nothing is changed.
 * @throws BAD_NAME if the broker holds no such job; UNSUPPORTED for a job of version 1;
 * UNKNOWN_RULES if the owner of a shard does not know the rules; NO_OWNER if a shard has no owner.
 */
export async function upgradeRules(options: RulesUpgradeOptions): Promise<RulesUpgrade> {
  const { connection, job, host } = options;
  const { subjects, manager, records, settings, journalOf } = await openStoredJob(connection, job);
  const { rules: from, shards, synchronization } = settings;
  const upgrade = { job, from, to: CURRENT_RULES, shards };
  if (from === CURRENT_RULES) return upgrade;
  if (from < UPGRADABLE_RULES_MIN) throw tooOld(job, from);

  const storage = storageQueries(manager, subjects);
  const owners = new OwnersClient({ connection, storage, subjects, host, journalOf });
  const numbers = Array.from({ length: shards }, (_, shard) => shard);
  await mapConcurrently(numbers, (shard) => requireKnown(owners, shard));
  await mapConcurrently(numbers, (shard) =>
    owners.append(shard, { verb: "rules", rules: CURRENT_RULES, synchronization }),
  );
  await settingsRecord.change({ bucket: records, pause: delay }, (present) =>
    present["rules"] === CURRENT_RULES ? present : { ...present, rules: CURRENT_RULES },
  );
  return upgrade;
}

/** @throws UNKNOWN_RULES if the owner of a shard could not fold on. */
async function requireKnown(owners: OwnersClient, shard: number): Promise<void> {
  const { fields } = await owners.ask(shard, "status", {});
  const status = asMap(fields["status"], "status");
  const known = status["rulesKnown"] === undefined ? 0 : integerField(status, "rulesKnown");
  if (known >= CURRENT_RULES) return;
  throw new PserverError(
    "UNKNOWN_RULES",
    `shard ${shard}: the host that serves it does not know rules ${CURRENT_RULES}: update all hosts first`,
    { shard, expected: CURRENT_RULES, received: known },
  );
}

function tooOld(job: string, rules: number): PserverError {
  return new PserverError(
    "UNSUPPORTED",
    `job ${job} has rules ${rules}, under which its shards were not told what is declared: it stays on them`,
    { job, expected: UPGRADABLE_RULES_MIN, received: rules },
  );
}
