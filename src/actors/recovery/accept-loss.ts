import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/transport-node";
import { PserverError, quoteName } from "../../protocol/index.ts";
import { Shard } from "../fold/shard.ts";
import { Credit } from "../journal/credit.ts";
import { loadSnapshot, type RecoveredShard } from "../owner/recover-shard.ts";
import type { ShardOwnerDeps } from "../owner/shard-owner-deps.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import { blockKey } from "../snapshot/state.ts";
import {
  type ContinueDeps,
  type Continued,
  continueShard,
  leftJournals,
} from "./continue-shard.ts";
import type { LackedBlock, RecoveryChoice, ShardFindings } from "./findings.ts";
import { foldPrefix } from "./fold-prefix.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { lackedBlocks } from "./inspect-snapshots.ts";

/** Dependencies of {@link acceptLoss}: those of an owner, on one connection. */
export type AcceptLossDeps = Omit<ContinueDeps, "onStage"> &
  Pick<ShardOwnerDeps, "manager" | "inboxPrefix"> & {
    readonly connection: NatsConnection;
    readonly payloadBytesMax: number;
    /** The blocks that the shard must have. */
    readonly initialized: readonly InitializedBlock[];
    /** Called after each stage. */
    readonly onStage?: (stage: RecoveryStage) => void;
  };

/** Completed stage of a recovery. Before `committed`, the shard is unchanged. */
export type RecoveryStage = "loaded" | "folded" | "committed" | "opened";

/** A shard that had failed and goes on under a new generation. */
export type AcceptedLoss = Continued;

/** Credit of the journal reader while a prefix is folded. */
const CREDIT_BYTES = 32 * 1024 ** 2;

/**
 * Continues a shard from the chosen state, under a new generation, so that positions stay unambiguous.
 * The decisive write is a manifest after the newest one found: if an owner or another recovery has
 * written since, it fails, and nothing changes. If it is interrupted later, a host completes the rest.
 * @throws NOT_OWNER if somebody else has written a manifest since the inspection; SNAPSHOT_DAMAGED,
 * JOURNAL_DAMAGED if the chosen state can no longer be read; INCOMPLETE if blocks of initialized
 * parameters would be missing; NO_SPACE.
 */
export async function acceptLoss(
  deps: AcceptLossDeps,
  findings: ShardFindings,
  choice: RecoveryChoice,
): Promise<AcceptedLoss> {
  const entries = await deps.store.manifestEntries();
  const base = entries.find(({ seq }) => seq === choice.manifestSeq)?.manifest;
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const { shard, stored } = await rebuild(deps, choice, base);
  const { generation, lastKnownSeq: lastSeq } = findings;
  // What was stored in the place of lost records counts as lost, too.
  const seq = choice.generation === generation ? choice.lost.from - 1 : shard.seq;
  const from = { generation: choice.generation, seq };
  const left = leftJournals(from, newest, { generation, lastSeq });
  return await continueShard(deps, {
    ...{ shard, stored, owner: randomUUID(), generation, left, past: [] },
    manifestSeq: findings.manifestSeq,
    term: newest?.term ?? 0,
    fallbacks: base?.fallbacks ?? [],
  });
}

/** The chosen state, and its pieces that are stored. */
async function rebuild(
  deps: AcceptLossDeps,
  choice: RecoveryChoice,
  base: Manifest | undefined,
): Promise<Pick<RecoveredShard, "shard" | "stored">> {
  const { subjects, shard: number, journal, payloadBytesMax, onStage } = deps;
  if (choice.manifestSeq !== undefined && base === undefined) throw snapshotGone(number, choice);
  const { shard, stored } =
    base === undefined
      ? { shard: Shard.create({ subjects, shard: number }), stored: new Map() }
      : await loadSnapshot(deps, { seq: choice.manifestSeq ?? 0, manifest: base });
  onStage?.("loaded");
  // A new block may have the epoch and version of a removed one whose pieces are stored.
  const removed = new Set<string>();
  shard.hooks = { blockRemoved: ({ parameter, index }) => removed.add(blockKey(parameter, index)) };
  if (choice.from === "prefix") {
    const { generation, seq: to } = choice;
    const credit = new Credit(CREDIT_BYTES, payloadBytesMax);
    await foldPrefix({ ...deps, shard, journal, generation, to, credit });
  }
  const lacked = lackedBlocks(deps.initialized, shard.blocks());
  if (lacked.length > 0) throw incomplete(number, lacked);
  onStage?.("folded");
  return { shard, stored: new Map([...stored].filter(([key]) => !removed.has(key))) };
}

function incomplete(shard: number, lacked: readonly LackedBlock[]): PserverError {
  const [first] = lacked;
  return new PserverError(
    "INCOMPLETE",
    `shard ${shard}: ${lacked.length} blocks of initialized parameters would be missing, the first is block ${first?.index} of ${quoteName(first?.parameter ?? "")}`,
    { shard, missing: lacked.length },
  );
}

function snapshotGone(shard: number, { manifestSeq }: RecoveryChoice): PserverError {
  const text = `shard ${shard}: the manifest ${manifestSeq} that was chosen is gone`;
  return new PserverError("SNAPSHOT_DAMAGED", text, { shard, seq: manifestSeq });
}
