import { type GrantedParameter, HEADER_BYTES_MAX, packValue } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Parameter } from "./parameter-record.ts";
import type { Surroundings } from "./settings.ts";

/** The first version of the rules under which journals are told what is declared. */
const RULES_THAT_DECLARE = 2;

/** Bytes that a list of parameters takes beside them. */
const LIST_BYTES = 16;

/**
 * Tells the journals of the shards concerned that this trainer initializes these parameters, in one
 * record a shard as far as messages are large enough, before the trainer itself is told. A repeat is
 * harmless, so whoever repeats a request makes up for a host that died before it came to this. Nothing
 * is written into journals of version 1, which have no such record.
 */
export async function announce(
  around: Surroundings,
  trainer: string,
  parameters: readonly Parameter[],
): Promise<void> {
  if (around.job.rules < RULES_THAT_DECLARE) return;
  const records = [...byShard(around, parameters)].flatMap(([shard, granted]) =>
    batches(granted, around.maxPayloadBytes - HEADER_BYTES_MAX).map((batch) => ({ shard, batch })),
  );
  await mapConcurrently(records, ({ shard, batch }) =>
    around.owners.append(shard, { verb: "declare", trainer, parameters: batch }),
  );
}

function byShard(
  { job }: Surroundings,
  parameters: readonly Parameter[],
): Map<number, GrantedParameter[]> {
  const granted = new Map<number, GrantedParameter[]>();
  for (const { declaration, layout, lifecycle } of parameters) {
    const parameter = { ...declaration, epoch: lifecycle.context.epoch, layout };
    // Blocks go round the shards, so those of more than one round lie on shards named already.
    for (let i = 0; i < Math.min(layout.blocks, job.shards); i++) {
      const shard = (layout.firstShard + i) % job.shards;
      const present = granted.get(shard);
      if (present === undefined) granted.set(shard, [parameter]);
      else present.push(parameter);
    }
  }
  return granted;
}

/** The parameters in order, cut so that each list fits into so many bytes. */
function batches(parameters: readonly GrantedParameter[], bytesMax: number): GrantedParameter[][] {
  const cut: GrantedParameter[][] = [];
  let room = 0;
  for (const parameter of parameters) {
    const { length } = packValue(parameter);
    if (cut.length === 0 || length > room) {
      cut.push([]);
      room = bytesMax - LIST_BYTES;
    }
    cut.at(-1)?.push(parameter);
    room -= length;
  }
  return cut;
}
