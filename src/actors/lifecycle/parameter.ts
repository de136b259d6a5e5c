import { isDeepStrictEqual } from "node:util";
import { isRobust } from "../../protocol/config/index.ts";
import { badConfig } from "../../protocol/config/read-settings.ts";
import {
  asMap,
  blockPlaces,
  computeLayout,
  type Declaration,
  DTYPES,
  type Fields,
  integerField,
  type Layout,
  type LifecycleState,
  type ParameterInfo,
  PserverError,
  parseParameterInfo,
  pinToFragment,
  quoteName,
  SHARD_BYTES_MAX,
  type ShardPlaces,
  shardOfBlock,
} from "../../protocol/index.ts";
import { heldBytes, slotPlan } from "../fold/block-actor.ts";
import type { JobSettings } from "../job/job-settings.ts";
import { ENTRY_FORMAT, type KvBucket, type KvEntry, readEntry } from "../journal/kv-bucket.ts";
import {
  type BucketDeps,
  BucketEntry,
  PARAMETER_KEYS,
  parameterKey,
  parameterOfKey,
} from "./lock.ts";
import {
  type Lifecycle,
  parseLifecycleEntry,
  type ShardPosition,
  toLifecycleEntry,
  UNINITIALIZED,
} from "./machine.ts";

/** The number of a parameter that has none yet: it was planned, but not written. */
export const UNNUMBERED = 0;

/** A parameter as its entry holds it. The epoch of its blocks is that of its own lifecycle. */
export interface Parameter {
  readonly declaration: Declaration;
  readonly layout: Layout;
  /** Number of its first block, see `ParameterInfo`; `UNNUMBERED` until it is written. */
  readonly firstNumber: number;
  /** The most blocks it had under any epoch: blocks of an earlier layout may still exist. */
  readonly blocksMax: number;
  /** Epoch of the job's initialization that declared it; 0 if it was created by itself. */
  readonly jobEpoch: number;
  readonly lifecycle: Lifecycle;
  /** Revision of the entry; 0 if it has not been written yet. */
  readonly revision: number;
}

/** Dependencies of a parameter's layout, besides its declaration. */
interface LayoutDeps {
  readonly job: JobSettings;
  readonly maxPayloadBytes: number;
}

/**
 * Returns the parameter with the declaration of a new initialization, without numbers, its lifecycle unchanged. `place` gets the
 * layout of a new parameter, on the shard of the name's hash, and returns it on the shard where it belongs. A known
 * parameter keeps its first shard: blocks of an earlier layout are looked for nowhere else.
 * @throws TOO_LARGE if the shards could not hold even this parameter alone; BAD_CONFIG as {@link checkFragment} and
 * {@link checkGuard}.
 */
export function redeclare(
  deps: LayoutDeps,
  known: Parameter | undefined,
  declaration: Declaration,
  place: (hashed: Layout) => Layout = (hashed) => hashed,
): Parameter {
  checkFragment(deps.job, known?.declaration, declaration);
  checkGuard(declaration);
  const hashed = layoutOf(deps, declaration);
  const layout =
    known === undefined ? place(hashed) : { ...hashed, firstShard: known.layout.firstShard };
  const blocksMax = Math.max(known?.blocksMax ?? 0, layout.blocks);
  const before = known ?? { jobEpoch: 0, lifecycle: UNINITIALIZED, revision: 0 };
  return { ...before, declaration, layout, firstNumber: UNNUMBERED, blocksMax };
}

/**
 * Returns the state of a parameter, given the job's. A parameter that was declared for the job follows the job. It is
 * "uninitialized" if that initialization ended without a finish, or if it was written after `finish` had read the
 * declarations (see `sealed`).
 */
export function effectiveState(parameter: Parameter, job: Lifecycle): LifecycleState {
  const { lifecycle, jobEpoch, revision } = parameter;
  if (jobEpoch === 0 || lifecycle.state === "ready") return lifecycle.state;
  if (jobEpoch !== job.context.epoch) return "uninitialized";
  if (job.state !== "ready") return job.state;
  return revision <= job.context.sealed ? "ready" : "uninitialized";
}

/** Returns the parameter as replies carry it. */
export function infoOf(parameter: Parameter, job: Lifecycle): ParameterInfo {
  return {
    ...parameter.declaration,
    epoch: parameter.lifecycle.context.epoch,
    ready: effectiveState(parameter, job) === "ready",
    layout: parameter.layout,
    firstNumber: parameter.firstNumber,
  };
}

/** Returns the ends of the journals when the parameter became ready; none before. */
export function readyAt(parameter: Parameter, job: Lifecycle): readonly ShardPosition[] {
  if (effectiveState(parameter, job) !== "ready") return [];
  return parameter.lifecycle.state === "ready" ? parameter.lifecycle.context.at : job.context.at;
}

/** Makes the entries of a reply about one parameter. */
export function parameterReply(parameter: Parameter, job: Lifecycle): Fields {
  return { parameters: [infoOf(parameter, job)], at: readyAt(parameter, job) };
}

/**
 * Returns the parameter if it is initialized by itself.
 * @throws NOT_SELECTED if it is part of the job's initialization, which ends as a whole.
 */
export function requireOwn(parameter: Parameter): Parameter {
  if (parameter.jobEpoch === 0) return parameter;
  const { name } = parameter.declaration;
  throw new PserverError(
    "NOT_SELECTED",
    `${quoteName(name)} was declared for the job, in epoch ${parameter.jobEpoch}; ` +
      "it is finished and aborted with the job only",
    { parameter: name, jobEpoch: parameter.jobEpoch },
  );
}

/**
 * Checks that two declarations of one parameter are equal.
 * @throws BAD_CONFIG naming what was expected and what was received.
 */
export function requireSameDeclaration(expected: Declaration, received: Declaration): void {
  if (isDeepStrictEqual(expected, received)) return;
  const { name } = expected;
  throw new PserverError(
    "BAD_CONFIG",
    `${quoteName(name)} was declared differently: ` +
      `expected ${describe(expected)}; received ${describe(received)}`,
    { parameter: name, expected, received },
  );
}

/** Returns the bytes of the parameters' values and slots on each shard, by shard number. */
export function shardBytes(
  parameters: Iterable<Pick<Parameter, "declaration" | "layout">>,
  { shards, synchronization }: Pick<JobSettings, "shards" | "synchronization">,
): number[] {
  const bytes: number[] = new Array(shards).fill(0);
  for (const { declaration, layout } of parameters) {
    const { dtype, shape, config } = declaration;
    // All blocks but the last have the same length.
    const byCount = new Map<number, number>();
    for (const { shard, start, count } of blockPlaces(layout)) {
      const block = { dtype, shape, config, start, count };
      const held = byCount.get(count) ?? heldBytes(block, slotPlan(block, synchronization));
      byCount.set(count, held);
      bytes[shard] = (bytes[shard] ?? 0) + held;
    }
  }
  return bytes;
}

/**
 * Passes if the fragment in a declaration can be its parameter's.
 * @throws BAD_CONFIG in a job without fragments, for elements that are no floats, for a fragment other than the one under
 * which the parameter was placed, and for a merge by order of elements that need not be numbers.
 */
function checkFragment(
  { synchronization }: JobSettings,
  known: Declaration | undefined,
  { name, dtype, config }: Declaration,
): void {
  const { fragment } = config;
  const what = `${quoteName(name)}: config.fragment`;
  if (known !== undefined && known.config.fragment !== fragment) {
    const expected = `${known.config.fragment ?? "none"}, with which it was placed on its shard`;
    throw badConfig(what, expected, fragment ?? "none");
  }
  if (fragment === undefined) return;
  if (synchronization.mode !== "diloco") {
    throw badConfig(what, `none in a job with synchronization ${synchronization.mode}`, fragment);
  }
  if (!DTYPES[dtype].float) throw badConfig(what, `none for elements of ${dtype}`, fragment);
  const merge = config.merge ?? synchronization.merge;
  if (!config.allowNonFinite || !isRobust(merge)) return;
  throw badConfig(`${quoteName(name)}: config.allowNonFinite`, `false with merge ${merge}`, true);
}

/** Returns a declaration with the guard of its job, if it names none and can have one. */
export function withGuard(
  { guard }: Pick<JobSettings, "guard">,
  declaration: Declaration,
): Declaration {
  const { dtype, config } = declaration;
  const takesOne = DTYPES[dtype].float && !config.static && !config.allowNonFinite;
  if (guard === undefined || config.guard !== undefined || !takesOne) return declaration;
  return { ...declaration, config: { ...config, guard } };
}

/** @throws BAD_CONFIG for a guard of elements that are no floats. */
function checkGuard({ name, dtype, config: { guard } }: Declaration): void {
  if (guard === undefined || guard === "off" || DTYPES[dtype].float) return;
  throw badConfig(`${quoteName(name)}: config.guard`, `none for elements of ${dtype}`, "one");
}

function layoutOf({ job, maxPayloadBytes }: LayoutDeps, declaration: Declaration): Layout {
  const { name, dtype, shape, config } = declaration;
  const { shards } = job;
  const wholeRows = config.sparse;
  const { fragment } = config;
  const cut = computeLayout({ name, dtype, shape, shards, maxPayloadBytes, wholeRows });
  const layout = fragment === undefined ? cut : pinToFragment(cut, fragment);
  // Checked before its blocks are listed: a shape of 2^50 elements must not cost memory here.
  const valueBytes = layout.elements * DTYPES[dtype].bytes;
  if (valueBytes > SHARD_BYTES_MAX * shards) throw tooLarge(name, valueBytes, shards);
  const bytes = shardBytes([{ declaration, layout }], job);
  if (Math.max(...bytes) <= SHARD_BYTES_MAX) return layout;
  const total = bytes.reduce((sum, held) => sum + held, 0);
  throw tooLarge(name, total, shards);
}

function tooLarge(name: string, bytes: number, shards: number): PserverError {
  return new PserverError(
    "TOO_LARGE",
    `${quoteName(name)}: ${bytes} bytes of values and slots on ${shards} shards; ` +
      `a shard holds at most ${SHARD_BYTES_MAX}`,
    { parameter: name, expected: SHARD_BYTES_MAX, received: bytes },
  );
}

function describe(declaration: Declaration): string {
  const { dtype, shape, config } = declaration;
  return `${dtype} [${shape}] ${JSON.stringify(config)}`;
}

/** Returns the entry of a parameter: readable JSON. */
export function toParameterEntry(parameter: Parameter): unknown {
  const { declaration, layout, firstNumber, blocksMax, jobEpoch } = parameter;
  const lifecycle = toLifecycleEntry(parameter.lifecycle);
  const placed = { layout, firstNumber, blocksMax };
  return { format: ENTRY_FORMAT, ...declaration, ...placed, jobEpoch, lifecycle };
}

/**
 * Reads a parameter from its entry; undefined if there is none.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export function parseParameterEntry(
  stored: KvEntry | undefined,
  name: string,
): Parameter | undefined {
  if (stored === undefined) return undefined;
  const key = parameterKey(name);
  return readEntry(stored.value, key, (fields) => {
    const lifecycle = parseLifecycleEntry(asMap(fields["lifecycle"], "lifecycle"), key);
    const { epoch } = lifecycle.context;
    const info = parseParameterInfo({ ...fields, epoch });
    const { epoch: _epoch, ready: _ready, layout, firstNumber, ...declaration } = info;
    return {
      declaration,
      layout,
      firstNumber,
      blocksMax: integerField(fields, "blocksMax", layout.blocks),
      jobEpoch: integerField(fields, "jobEpoch"),
      lifecycle,
      revision: stored.revision,
    };
  });
}

/** Returns the entry of a parameter, which is undefined if it was never declared. */
export function parameterEntry(name: string): BucketEntry<Parameter | undefined, Parameter> {
  return new BucketEntry<Parameter | undefined, Parameter>(
    parameterKey(name),
    (stored) => parseParameterEntry(stored, name),
    toParameterEntry,
  );
}

/** Reads every parameter that was ever declared, in no order. */
export async function readAllParameters(bucket: Pick<KvBucket, "changes">): Promise<Parameter[]> {
  const parameters = new Map<string, Parameter>();
  await bucket.changes(PARAMETER_KEYS, 0, (key, entry) => {
    const parameter = parseParameterEntry(entry, parameterOfKey(key));
    if (parameter !== undefined) parameters.set(key, parameter);
  });
  return [...parameters.values()];
}

/**
 * Changes a parameter as {@link BucketEntry.change} does, and returns it with its new revision. `first`: the
 * parameter as it is known already, with undefined for one that is not known.
 */
export async function changeParameter(
  deps: BucketDeps,
  name: string,
  decide: (known: Parameter | undefined) => Parameter | Promise<Parameter>,
  first?: { readonly known: Parameter | undefined },
): Promise<Parameter> {
  const present = first && { result: first.known, revision: first.known?.revision ?? 0 };
  const { result, revision } = await parameterEntry(name).change(deps, decide, present);
  return { ...result, revision };
}

/** Returns the parameter; @throws UNKNOWN_PARAMETER if there is none. */
export function requireKnown(known: Parameter | undefined, name: string): Parameter {
  if (known !== undefined) return known;
  throw new PserverError("UNKNOWN_PARAMETER", `no parameter ${quoteName(name)}`, {
    parameter: name,
  });
}

/** Limit of the look-ups under way: pulls may name parameters that nobody has declared. */
const LOOK_UPS_MAX = 64;

/** Says on which shards blocks lie, by the entries of their parameters. */
export class ParameterPlaces {
  readonly #bucket: Pick<KvBucket, "read">;
  /** On which shards the blocks of a parameter lie, which never changes. */
  readonly #places: Map<string, ShardPlaces> = new Map();
  readonly #lookUps: Map<string, Promise<ShardPlaces | undefined>> = new Map();

  constructor(bucket: Pick<KvBucket, "read">) {
    this.#bucket = bucket;
  }

  /**
   * Returns the shard of a parameter's block `index`; undefined if there is no such parameter, the
   * broker does not say, or too many others are looked up. It does not throw.
   */
  async shardOf(parameter: string, index: number): Promise<number | undefined> {
    const places = this.#places.get(parameter) ?? (await this.#lookUp(parameter));
    return places && shardOfBlock(places, index);
  }

  #lookUp(parameter: string): Promise<ShardPlaces | undefined> | undefined {
    const underWay = this.#lookUps.get(parameter);
    if (underWay !== undefined || this.#lookUps.size >= LOOK_UPS_MAX) return underWay;
    const lookUp = this.#read(parameter).finally(() => this.#lookUps.delete(parameter));
    this.#lookUps.set(parameter, lookUp);
    return lookUp;
  }

  async #read(parameter: string): Promise<ShardPlaces | undefined> {
    try {
      const known = await parameterEntry(parameter).read({ bucket: this.#bucket });
      if (known !== undefined) this.#places.set(parameter, known.layout);
      return known?.layout;
    } catch {
      // The asker repeats its request.
      return undefined;
    }
  }
}
