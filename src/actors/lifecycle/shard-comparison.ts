import {
  type ErrorCode,
  ensureError,
  type InitializedJob,
  PARAMETERS_PER_REQUEST_MAX,
  PserverError,
  type ReadyRecord,
  type ShardKnowledge,
  shardsOfBlocks,
} from "../../protocol/index.ts";
import type { EntryProblem } from "../../protocol/messages/shard-knowledge.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { JobSettings } from "../job/job-settings.ts";
import type { Owners } from "../job/owners-client.ts";
import { ENTRY_ADVICE } from "../journal/kv-bucket.ts";
import { type ComparedEntries, contradictions } from "./compare-entries.ts";
import type { DeclaredLedger } from "./declared-ledger.ts";
import type { BucketDeps } from "./lock.ts";
import { jobEntry, type Lifecycle } from "./machine.ts";
import { membersEntry } from "./members.ts";
import type { Parameter } from "./parameter.ts";
import { LAST_GIVEN, SWEPT } from "./sessions.ts";

/** Dependencies of {@link ShardComparison}. */
interface ComparisonDeps extends BucketDeps {
  readonly job: Pick<JobSettings, "job" | "shards">;
  readonly owners: Pick<Owners, "known" | "append">;
  readonly ledger: Pick<DeclaredLedger, "catalog">;
}

/** What a shard knows, by its number. */
type Knowledge = ReadonlyMap<number, ShardKnowledge>;

/** Errors of an owner that say nothing about its shard. */
const DEFECTS: readonly ErrorCode[] = ["BAD_MESSAGE", "INTERNAL", "DENIED"];

const PROBLEMS_NAMED_MAX = 4;

/** Their names fit into the smallest payload that a broker may have. */
const READY_PER_RECORD = PARAMETERS_PER_REQUEST_MAX;

/**
 * Compares the entries of a job's bucket with what its shards know, before a host decides anything by the entries:
 * each shard once, and again after the connection to the broker was lost. Tells the shards what the entries say and
 * they do not know.
 */
export class ShardComparison {
  readonly #deps: ComparisonDeps;
  /** Shards with which the entries agree. */
  #agreed: Set<number> = new Set();
  #running: Promise<void> | undefined;

  constructor(deps: ComparisonDeps) {
    this.#deps = deps;
  }

  /** Has every shard compared again: another store may be behind the broker. */
  forget(): void {
    this.#agreed = new Set();
  }

  /**
   * Compares the shards that were not compared yet.
   * @throws JOB_DAMAGED naming the entries that contradict a shard; the error of an owner that does not answer, NO_OWNER
   * after 20 s without one.
   */
  async requireAll(): Promise<void> {
    await this.#compare(await this.#ask(undefined));
  }

  /**
   * Compares those of the shards not compared yet whose owners answer at once. Returns whether all are compared.
   * @throws JOB_DAMAGED naming the entries that contradict a shard.
   */
  async require(): Promise<boolean> {
    this.#running ??= this.#ask(0)
      .then((known) => this.#compare(known))
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
    return this.#agreed.size === this.#deps.job.shards;
  }

  /** Asks the shards that were not compared yet. With a grace time of 0, those without an owner are left out. */
  async #ask(graceMs: 0 | undefined): Promise<Knowledge> {
    const { owners, job } = this.#deps;
    const shards = Array.from({ length: job.shards }, (_, shard) => shard);
    const open = shards.filter((shard) => !this.#agreed.has(shard));
    const known = new Map<number, ShardKnowledge>();
    await mapConcurrently(open, async (shard) => {
      try {
        known.set(shard, await owners.known(shard, graceMs));
      } catch (error) {
        // Such a shard is served by nobody, or has stopped: it is compared when it is served.
        if (graceMs !== 0 || DEFECTS.includes(ensureError(error).code)) throw error;
      }
    });
    return known;
  }

  /** Compares the entries, as they are now, with what shards knew before. */
  async #compare(known: Knowledge): Promise<void> {
    if (known.size === 0) return;
    const agreed = this.#agreed;
    const entries = await readCompared(this.#deps);
    const problems = [...known].flatMap(([shard, knows]) => contradictions(entries, shard, knows));
    if (problems.length > 0) throw jobDamaged(this.#deps.job.job, problems);
    await this.#tell(known, entries.job);
    for (const shard of known.keys()) agreed.add(shard);
  }

  /** Tells shards of what is initialized and they do not know. */
  async #tell(known: Knowledge, job: Lifecycle): Promise<void> {
    const { owners, ledger } = this.#deps;
    await mapConcurrently([...known], async ([shard, knows]) => {
      for (const record of readyRecords(knows, job, (name) => ledger.catalog.get(name))) {
        await owners.append(shard, record);
      }
    });
  }
}

/** Reads the entries that shards know of. @throws as `KvBucket` does. */
async function readCompared(deps: ComparisonDeps): Promise<ComparedEntries> {
  const { catalog } = deps.ledger;
  await catalog.refresh();
  const [job, { revision }, given, swept] = await Promise.all([
    jobEntry.read(deps),
    membersEntry.read(deps),
    LAST_GIVEN.read(deps),
    SWEPT.read(deps),
  ]);
  const parameter = (name: string): Parameter | undefined => catalog.get(name);
  return { job, parameter, membersRevision: revision, given, swept };
}

/** Makes the error for entries that contradict what shards know, or cannot be read. */
function jobDamaged(job: string, problems: readonly EntryProblem[]): PserverError {
  const named = problems.slice(0, PROBLEMS_NAMED_MAX);
  const texts = named.map(({ key, problem }) => `${key}: ${problem}`);
  const rest = problems.length > named.length ? `, and ${problems.length - named.length} more` : "";
  return new PserverError(
    "JOB_DAMAGED",
    `job ${job}: entries of its bucket are lost or older than what was done under them: ` +
      `${texts.join("; ")}${rest}; ${ENTRY_ADVICE}`,
    { job, entries: named },
  );
}

/** Returns what the job's shards are told of its initialization; undefined if it is not initialized. */
function toInitializedJob({ state, context }: Lifecycle): InitializedJob | undefined {
  if (state !== "ready") return undefined;
  const { epoch, revised, session } = context;
  return { epoch, revised, session };
}

/** Returns the records that tell a shard of what is initialized and it does not know. */
function readyRecords(
  known: ShardKnowledge,
  lifecycle: Lifecycle,
  parameter: (name: string) => Parameter | undefined,
): ReadyRecord[] {
  const job = toInitializedJob(lifecycle);
  const isNews = job !== undefined && (known.job === undefined || job.revised > known.job.revised);
  const ready = known.parameters.flatMap(({ name, epoch, initialized }) => {
    const own = parameter(name)?.lifecycle;
    const isReady = own?.state === "ready" && own.context.epoch === epoch;
    return isReady && initialized !== true ? [[name, epoch] as const] : [];
  });
  const records: ReadyRecord[] = isNews ? [{ verb: "ready", job, parameters: [] }] : [];
  for (let from = 0; from < ready.length; from += READY_PER_RECORD) {
    records.push({ verb: "ready", parameters: ready.slice(from, from + READY_PER_RECORD) });
  }
  return records;
}

/** Tells the journals of the shards concerned that the job is initialized, or a parameter by itself. */
export async function announceReady(
  { job: { shards }, owners }: Pick<ComparisonDeps, "job" | "owners">,
  ready: { readonly job: Lifecycle } | { readonly parameter: Parameter },
): Promise<void> {
  if ("job" in ready) {
    const job = toInitializedJob(ready.job);
    if (job === undefined) return;
    const all = Array.from({ length: shards }, (_, shard) => shard);
    await mapConcurrently(all, (shard) =>
      owners.append(shard, { verb: "ready", job, parameters: [] }),
    );
    return;
  }
  const { declaration, layout, lifecycle } = ready.parameter;
  const parameters = [[declaration.name, lifecycle.context.epoch] as const];
  const holders = shardsOfBlocks(layout, 0, layout.blocks);
  await mapConcurrently(holders, (shard) => owners.append(shard, { verb: "ready", parameters }));
}
