import type { Shard } from "../fold/shard.ts";
import { majorityLastSeq } from "../journal/majority-reads.ts";
import { JournalReader } from "../journal/reader.ts";
import { TapeWriter } from "../tape/tape-writer.ts";
import { FoldLoop } from "./fold-loop.ts";
import { JournalHead } from "./journal-head.ts";
import { OwnedJournal } from "./owned-journal.ts";
import { OwnerCore } from "./owner-core.ts";
import { PositionQueue } from "./position-queue.ts";
import type { RecoveredShard } from "./recover-shard.ts";
import { ServedRequests } from "./served-requests.ts";
import { type ServingDeps, type ServingParts, ServingShard } from "./serving-shard.ts";
import { ShardRequests } from "./shard-requests.ts";
import { ShardSnapshots } from "./shard-snapshots.ts";
import { StepQueue } from "./step-queue.ts";

/** The shard that is being composed: its parts call it only once it is there. */
type Composed = () => ServingShard;

/**
 * Prepares a recovered shard for serving: connects its parts, removes what the former owner has left
 * and creates the journal of a new shard. {@link ServingShard.start} follows.
 */
export async function serveShard(
  deps: ServingDeps,
  recovered: RecoveredShard,
): Promise<ServingShard> {
  const { host, owner, journal, journalStorage: storage, marks } = deps;
  const { shard } = recovered;
  const composed: Composed = () => serving;
  const head = new JournalHead(deps.shard);
  const tape = makeTape(deps, shard, composed);
  await tape?.open();
  const snapshots = new ShardSnapshots({
    ...deps,
    recovered,
    tape,
    kept: await deps.store.manifests(),
    onProgress: () => serving.poke(),
    onDeposed: deps.onFailure,
  });
  const owned = new OwnedJournal({
    ...{ host, owner, journal, storage, shard, snapshots, marks, head },
    onReplaced: () => serving.positionChanged(),
    onFellBack: deps.onFellBack,
    onGapRemains: deps.onSnapshotFailed,
  });
  const positions = makePositions(deps, composed);
  const steps = new StepQueue(deps.shard);
  const core = new OwnerCore({ shard, head, positions, steps });
  const requests = makeRequests(deps, { shard, positions, steps }, composed);
  const loop = makeLoop(deps, { shard, snapshots, tape, journal: owned }, composed);
  const serving = new ServingShard({
    ...{ deps, shard, core, journal: owned, snapshots, requests, loop, tape },
  });
  observe({ shard, requests, snapshots, tape });
  await snapshots.tidy();
  if (recovered.manifest === undefined) await owned.replace();
  return serving;
}

/** What writes the tape of the shard; undefined if its job has none. */
function makeTape(
  { shard, tape: store, onTapeFailed: onFailed, onTapeIncomplete: onIncomplete }: ServingDeps,
  folded: Shard,
  composed: Composed,
): TapeWriter | undefined {
  if (store === undefined) return undefined;
  return new TapeWriter({
    ...{ store, shard, folded },
    generation: () => composed().position.generation,
    onProgress: () => composed().poke(),
    ...{ onFailed, onIncomplete },
  });
}

function makePositions({ shard, journal, onLost }: ServingDeps, composed: Composed): PositionQueue {
  return new PositionQueue({
    shard,
    fallbacks: () => composed().fallbacks,
    lastSeq: (wanted, tell) => {
      majorityLastSeq(journal, wanted).then(tell, () => tell(undefined));
    },
    onLost,
  });
}

function makeRequests(
  deps: ServingDeps,
  { shard, positions, steps }: { shard: Shard; positions: PositionQueue; steps: StepQueue },
  composed: Composed,
): ShardRequests {
  const { host, memory, responder, status, shard: number } = deps;
  return new ShardRequests(
    { ...deps, connection: deps.dataConnection },
    new ServedRequests({
      ...{ number, shard, positions, steps, responder, status },
      position: () => composed().position,
      fallbacks: () => composed().fallbacks,
      snapshot: (at) => composed().snapshot(at),
      memory: () => ({ host, freeBytes: Math.max(0, Math.floor(memory.freeBytes)) }),
    }),
  );
}

function makeLoop(
  deps: ServingDeps,
  { shard, snapshots, tape, journal }: Omit<ServingParts, "deps" | "core" | "requests" | "loop">,
  composed: Composed,
): FoldLoop {
  return new FoldLoop({
    number: deps.shard,
    shard,
    reader: new JournalReader({ ...deps, connection: deps.journalConnection }),
    pace: deps.pace,
    events: {
      locate: () => composed().locate(),
      mayFold: () => !snapshots.holdsUp && tape?.holdsUp !== true && composed().fits(),
      onSettled: (settled) => composed().settled(settled),
      onAdvanced: (bytes) => composed().advanced(bytes),
      onGap: async (gap) => {
        await journal.skipGap(gap);
        composed().positionChanged();
      },
      onFailure: deps.onFailure,
    },
  });
}

/** Lets the parts know what the fold does. */
function observe({
  shard,
  requests,
  snapshots,
  tape,
}: Pick<ServingParts, "shard" | "requests" | "snapshots" | "tape">): void {
  shard.observer = tape;
  shard.hooks = {
    blockAdded: (block) => requests.blockAdded(block),
    blockRemoved: (block) => {
      requests.blockRemoved(block);
      snapshots.blockRemoved(block);
    },
    beforeChange: (block) => snapshots.beforeChange(block),
  };
}
