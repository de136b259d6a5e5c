import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/transport-node";
import { type Fallback, PserverError, quoteName } from "../../protocol/index.ts";
import { Shard } from "../fold/shard.ts";
import { Credit } from "../journal/credit.ts";
import { notedOf } from "../owner/head-mark.ts";
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
import type { RecoveryArchive } from "./recovery-archive.ts";

/** Dependencies of {@link acceptLoss}: those of an owner, on one connection. */
export type AcceptLossDeps = Omit<ContinueDeps, "onStage"> &
  Pick<ShardOwnerDeps, "manager" | "inboxPrefix"> & {
    readonly connection: NatsConnection;
    readonly payloadBytesMax: number;
    /** The blocks that the shard must have. */
    readonly initialized: readonly InitializedBlock[];
    /** Undefined if none was named. */
    readonly archive: RecoveryArchive | undefined;
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
  // Without any manifest or mark, only the archive knows the generation.
  const generation = Math.max(findings.generation, choice.generation);
  const isPresent = choice.generation === generation;
  // What was stored in the place of lost records counts as lost, too.
  const seq = isPresent ? choice.lost.from - 1 : shard.seq;
  const lastSeq = isPresent ? choice.lost.to : findings.lastKnownSeq;
  const from = { generation: choice.generation, seq };
  const left = leftJournals(from, newest, { generation, lastSeq });
  return await continueShard(deps, {
    ...{ shard, stored, owner: randomUUID(), generation, left, past: [] },
    manifestSeq: findings.manifestSeq,
    term: newest?.term ?? 0,
    fallbacks: fallbacksBefore(choice, base, newest),
  });
}

/** Losses with journals that were replaced before the chosen state. */
function fallbacksBefore(
  { from, generation }: RecoveryChoice,
  base: Manifest | undefined,
  newest: Manifest | undefined,
): readonly Fallback[] {
  if (from !== "archive") return base?.fallbacks ?? [];
  return newest?.fallbacks.filter((fallback) => fallback.generation < generation) ?? [];
}

/** The chosen state, and its pieces that are stored. */
async function rebuild(
  deps: AcceptLossDeps,
  choice: RecoveryChoice,
  base: Manifest | undefined,
): Promise<Pick<RecoveredShard, "shard" | "stored">> {
  const rebuilt =
    choice.from === "archive"
      ? await rebuildFromArchive(deps, choice)
      : await rebuildFromBroker(deps, choice, base);
  const lacked = lackedBlocks(deps.initialized, rebuilt.shard.blocks());
  if (lacked.length > 0) throw incomplete(deps.shard, lacked);
  deps.onStage?.("folded");
  return rebuilt;
}

/** The state in the archive, of which the broker has no piece. */
async function rebuildFromArchive(
  { archive, shard: number, onStage }: AcceptLossDeps,
  { generation, seq }: RecoveryChoice,
): Promise<Pick<RecoveredShard, "shard" | "stored">> {
  if (archive === undefined) {
    throw new PserverError("INTERNAL", `shard ${number}: no archive to go on from`, {
      shard: number,
    });
  }
  const shard = await archive.rebuild(number, { generation, seq });
  onStage?.("loaded");
  return { shard, stored: new Map() };
}

/** A snapshot, with the records of the journal up to the chosen one. */
async function rebuildFromBroker(
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
    const noted = notedOf(await deps.marks.read(), generation);
    await foldPrefix({ ...deps, shard, journal, generation, to, noted, credit });
  }
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
