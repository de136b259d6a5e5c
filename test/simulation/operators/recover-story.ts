import { openStoredJob } from "../../../src/actors/job/open-job.ts";
import { SnapshotStore } from "../../../src/actors/journal/snapshot-store.ts";
import { WatermarkKeeper } from "../../../src/actors/journal/watermark-keeper.ts";
import { acceptLoss } from "../../../src/actors/recovery/accept-loss.ts";
import { inspectShard } from "../../../src/actors/recovery/inspect-shard.ts";
import { initializedBlocks } from "../../../src/actors/recovery/inspect-snapshots.ts";
import { StreamPublisher } from "../../../src/transport/jetstream.ts";
import type { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { countRuns, prepare, type Report, type Variant } from "./fork-story.ts";
import type { Process } from "./processes.ts";
import { SHARDS, type SimulatedJob } from "./simulated-job.ts";
import { World } from "./world.ts";

/** The shard that loses records. */
const DAMAGED = 0;

/** Recoveries of a shard that has lost records, while hosts try to serve it and trainers train. */
export class RecoverStory {
  readonly #world: World;
  readonly #variant: Variant;
  readonly #runs: Process[] = [];
  #job: SimulatedJob;
  /** The first record that was lost, by the generation of its journal. */
  readonly #lost: Map<number, number> = new Map();

  constructor(random: Random, variant: Variant = {}) {
    this.#world = new World(random);
    this.#variant = variant;
    this.#job = this.#world.job("old");
  }

  async run(): Promise<Report> {
    const world = this.#world;
    this.#job = (await prepare(world)).job;
    for (let updates = 0; updates < 6; updates++) this.#job.push(updates % SHARDS);
    this.#damage();
    await world.storm([
      { weight: 8, left: 4, may: () => world.seemsStuck(this.#runs), run: () => this.#start() },
      { weight: 1, left: 1, run: () => this.#damage() },
      { weight: 20, left: 35, run: () => world.actOfHost(this.#job) },
      { weight: 12, left: 25, run: () => this.#job.push(world.random.below(SHARDS)) },
    ]);
    world.calm();
    await world.quietly("recover", (process) => recoverStopped(process, this.#job.name, DAMAGED));
    await this.#check();
    const { length: updates } = this.#job.updates;
    return { steps: world.processes.step, updates, ...countRuns(this.#runs) };
  }

  /** The broker loses a record in the middle of what no snapshot has yet, and the hosts crash. */
  #damage(): void {
    const { processes, broker } = this.#world;
    for (const { process } of this.#world.hostsOf(this.#job)) processes.crash(process);
    const { generation, seq } = this.#job.newest(DAMAGED).manifest;
    const stream = broker.streams.get(this.#job.subjects.journalStream(DAMAGED, generation));
    const lost = [...(stream?.messages.keys() ?? [])].find((each) => each > seq);
    if (lost === undefined || lost === stream?.lastSeq) return;
    stream?.messages.delete(lost);
    this.#lost.set(generation, Math.min(lost, this.#lost.get(generation) ?? lost));
  }

  #start(): void {
    const process = this.#world.start("recover", this.#variant.tampering?.("recover"));
    this.#runs.push(process);
    process.do(() => recoverStopped(process, this.#job.name, DAMAGED));
  }

  /** Every update is there, unless it is said to be given up, as only those behind a lost record are. */
  async #check(): Promise<void> {
    const found = await this.#world.serve(this.#job);
    for (const [shard, elements] of found.entries()) {
      const { fallbacks } = this.#job.newest(shard).manifest;
      for (const update of this.#job.updates.filter((each) => each.shard === shard)) {
        const isGivenUp = fallbacks.some(
          ({ generation, from, to }) =>
            generation === update.generation && from <= update.seq && update.seq <= to,
        );
        const what = `update ${update.generation}:${update.seq} of shard ${shard}`;
        promise(elements.includes(update.element) !== isGivenUp, () =>
          isGivenUp ? `${what} is there, but said to be given up` : `${what} is lost`,
        );
        const lost = shard === DAMAGED ? this.#lost.get(update.generation) : undefined;
        promise(
          !isGivenUp || (lost !== undefined && update.seq >= lost),
          () => `${what} is given up, though no record before it was lost`,
        );
      }
    }
  }
}

/** Does what `pserver recover` does with a shard where no host answers; returns whether it had anything to do. */
export async function recoverStopped(
  { connection, name: host }: Process,
  job: string,
  shard: number,
): Promise<true | undefined> {
  const stored = await openStoredJob(connection, job);
  const { manager, client, subjects, bucket, settings, journalOf } = stored;
  const inboxPrefix = subjects.hostInbox(host);
  const publisher = StreamPublisher.open(connection, inboxPrefix);
  const watermarks = new WatermarkKeeper(bucket, shard);
  const place = { shard, subjects, manager, client };
  const deps = {
    ...{ ...place, connection, host, inboxPrefix, watermarks, archive: undefined },
    ...{ payloadBytesMax: 1024 ** 2, partBytesMax: 1e6, storage: settings.journal },
    ...{ journal: journalOf(shard), store: new SnapshotStore({ ...place, publisher }) },
    initialized: await initializedBlocks(bucket, shard),
  };
  const watermark = await watermarks.read();
  const findings = await inspectShard({ ...deps, watermark, ownerError: undefined });
  const [choice] = findings.choices;
  if (findings.condition !== "stopped" || choice === undefined) return undefined;
  await acceptLoss(deps, findings, choice);
  return true;
}
