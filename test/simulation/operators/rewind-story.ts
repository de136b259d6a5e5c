import type { RewoundJob } from "../../../src/history/continue/rewind-job.ts";
import type { Position } from "../../../src/protocol/index.ts";
import type { Random } from "../random.ts";
import { promise } from "../violation.ts";
import { countRuns, prepare, type Report, type Variant } from "./fork-story.ts";
import type { Process } from "./processes.ts";
import { recoverStopped } from "./recover-story.ts";
import { changedElements, SHARDS, type SimulatedJob, type Update } from "./simulated-job.ts";
import { World } from "./world.ts";

/** The shard that may lose a record. */
const DAMAGED = 0;

/** A plan of a rewind, as the job's bucket has held it. */
interface NotedPlan {
  readonly id: string;
  readonly at: readonly Position[];
}

/** Rewinds and recoveries of a job, while hosts serve it and trainers train it and create parameters. */
export class RewindStory {
  readonly #world: World;
  readonly #variant: Variant;
  readonly #runs: Process[] = [];
  #job: SimulatedJob;
  #cuts: Position[][] = [];
  /** The updates of before the first rewind: the cuts lie among them. */
  #prelude: readonly Update[] = [];
  /** Whether a shard may lose a record in this schedule. */
  #mayLose = false;
  /** The first promise that a run has broken that says that it is complete. */
  #broken: unknown;

  constructor(random: Random, variant: Variant = {}) {
    this.#world = new World(random);
    this.#variant = variant;
    this.#job = this.#world.job("old");
  }

  async run(): Promise<Report> {
    const world = this.#world;
    ({ job: this.#job, cuts: this.#cuts } = await prepare(world));
    this.#prelude = [...this.#job.updates];
    const damages = world.random.below(2);
    this.#mayLose = damages > 0;
    const may = (): boolean => world.seemsStuck(this.#runs);
    await world.storm([
      { weight: 8, left: 5, may, run: () => this.#rewind() },
      { weight: 3, left: damages, run: () => this.#damage() },
      { weight: 3, left: 2 * damages, may, run: () => this.#recover() },
      { weight: 25, left: 50, run: () => world.actOfHost(this.#job) },
      { weight: 14, left: 30, run: () => this.#job.push(world.random.below(SHARDS)) },
      { weight: 6, left: 10, run: () => this.#create() },
    ]);
    world.calm();
    await this.#complete();
    if (this.#broken !== undefined) throw this.#broken;
    await this.#check();
    const { length: updates } = this.#job.updates;
    return { steps: world.processes.step, updates, ...countRuns(this.#runs) };
  }

  #command(name: string): Process {
    const process = this.#world.start(name, this.#variant.tampering?.(name));
    this.#runs.push(process);
    return process;
  }

  /** Goes back to a cut, or completes the rewind that is noted. */
  #rewind(): void {
    const { random } = this.#world;
    const process = this.#command("rewind");
    const completes = this.#job.hasPlan && random.chance(0.7);
    const at = completes ? undefined : (random.pick(this.#cuts) as Position[]);
    process.do(() => this.#rewindTo(process, at));
  }

  async #rewindTo(process: Process, at: readonly Position[] | undefined): Promise<RewoundJob> {
    return await this.#job.rewind(process, at, (stage) => {
      if (stage !== "complete") return;
      this.#checkCompleted().catch((error: unknown) => {
        this.#broken ??= error;
      });
    });
  }

  /** The broker loses a record that no snapshot has yet, and the hosts crash. */
  #damage(): void {
    for (const { process } of this.#world.hosts) this.#world.processes.crash(process);
    const { generation, seq } = this.#job.newest(DAMAGED).manifest;
    const name = this.#job.subjects.journalStream(DAMAGED, generation);
    const messages = this.#world.broker.streams.get(name)?.messages;
    const lost = [...(messages?.keys() ?? [])].find((each) => each > seq);
    if (lost !== undefined) messages?.delete(lost);
  }

  #recover(): void {
    const process = this.#command("recover");
    process.do(() => recoverStopped(process, this.#job.name, DAMAGED));
  }

  /** Creates a parameter; none on a shard that loses records: without its blocks the shard would not go on. */
  async #create(): Promise<void> {
    const number = this.#world.random.below(6);
    const shard = number % SHARDS;
    if (shard !== DAMAGED || !this.#mayLose) await this.#job.create(`p${number}`, shard);
  }

  get #bucket() {
    return this.#world.broker.stream(`KV_${this.#job.subjects.bucket()}`);
  }

  /** The plan that was noted last. */
  get #lastPlan(): NotedPlan | undefined {
    const all = [...this.#bucket.ever.values()];
    const last = all.findLast(({ subject }) => subject === this.#job.planSubject);
    return last && (JSON.parse(new TextDecoder().decode(last.data)) as NotedPlan);
  }

  /** Does what the documents advise for a rewind that was interrupted, and for a shard that is stopped. */
  async #complete(): Promise<void> {
    const world = this.#world;
    for (let tries = 0; tries < 2; tries++) {
      const { name } = this.#job;
      await world.quietly("recover", (process) => recoverStopped(process, name, DAMAGED));
      if (!this.#job.hasPlan) continue;
      await world.quietly("rewind", (process) => this.#rewindTo(process, undefined));
    }
  }

  /** Once a rewind is said to be complete, all shards have gone back to its cut. */
  async #checkCompleted(): Promise<void> {
    const plan = this.#lastPlan;
    if (this.#job.hasPlan || plan === undefined) return;
    for (let shard = 0; shard < SHARDS; shard++) {
      const state = await this.#job.stateAt(shard, this.#job.newest(shard).manifest);
      this.#checkCut(plan, shard, changedElements(state, shard));
    }
  }

  #checkCut({ id, at }: NotedPlan, shard: number, elements: readonly number[]): void {
    // A recovery may take the shard back further once the rewind has looked at it last.
    const { rewind } = this.#job.newest(shard).manifest;
    if (this.#mayLose && shard === DAMAGED && rewind?.id !== id) return;
    const { generation, seq } = at[shard] as Position;
    for (const update of this.#prelude.filter((each) => each.shard === shard)) {
      const isBefore = update.generation === generation && update.seq <= seq;
      promise(
        elements.includes(update.element) === isBefore,
        () => `shard ${shard} is not at its cut ${generation}:${seq}: it has ${elements}`,
      );
    }
  }

  /**
   * Every update is there, unless it is said to be given up. Only what was stored before the last rewind was complete
   * is, but for the shard that lost a record.
   */
  async #check(): Promise<void> {
    const found = await this.#world.serve(this.#job);
    const plan = this.#lastPlan;
    const completedAt = this.#world.broker.removals.get(this.#job.planSubject) ?? 0;
    for (const [shard, elements] of found.entries()) {
      if (plan !== undefined) this.#checkCut(plan, shard, elements);
      const { fallbacks } = this.#job.newest(shard).manifest;
      const mayLose = this.#mayLose && shard === DAMAGED;
      for (const update of this.#job.updates.filter((each) => each.shard === shard)) {
        const isGivenUp = fallbacks.some(
          ({ generation, from, to }) =>
            generation === update.generation && from <= update.seq && update.seq <= to,
        );
        const what = `update ${update.generation}:${update.seq} of shard ${shard}`;
        promise(elements.includes(update.element) !== isGivenUp, () =>
          isGivenUp ? `${what} is there, but said to be given up` : `${what} is lost`,
        );
        promise(
          !isGivenUp || mayLose || update.time <= completedAt,
          () => `${what} is given up, though it was stored after the rewind was complete`,
        );
      }
    }
    const ready = await this.#world.readyParameters(this.#job);
    for (const { name, time } of this.#job.created) {
      promise(
        time <= completedAt || this.#mayLose || ready.has(name),
        () => `parameter ${name} is gone, though it was created after the rewind was complete`,
      );
    }
  }
}
