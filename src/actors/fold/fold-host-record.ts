import type { HostRecord } from "../../protocol/host-records.ts";
import type { FoldTables } from "./fold-tables.ts";

/**
 * Takes over what a host's record tells a shard. Before the first `rules` record no other has an effect; those that
 * need the bounds of version 2 have none where there are no bounds.
 * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
 */
export function foldHostRecord(tables: FoldTables, record: HostRecord): void {
  const { rules, blocks, trainers, steps, declarations } = tables;
  const bounds = rules?.bounds;
  if (record.verb === "rules") tables.takeRules(record);
  else if (rules === undefined) return;
  else if (record.verb === "members") steps.takeMembers(record);
  else if (record.verb === "drop") {
    blocks.drop(record.parameter, record.epoch);
    declarations.drop(record.parameter, record.epoch);
  } else if (record.verb === "floor") trainers.raiseFloor(record.session);
  else if (record.verb === "sessions") trainers.endSessions(record);
  else if (record.verb === "forget") trainers.forget(record.trainers);
  else if (bounds !== undefined) declarations.take(record, bounds.declaredMax);
}
