import { isDeepStrictEqual } from "node:util";
import {
  asMap,
  computeLayout,
  type Declaration,
  DTYPES,
  integerField,
  type Layout,
  type LifecycleState,
  PserverError,
  parseParameterInfo,
  quoteName,
  SHARD_BYTES_MAX,
} from "../../protocol/index.ts";
import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { parameterKey } from "./keys.ts";
import {
  parseLifecycleRecord,
  RECORD_FORMAT,
  readRecord,
  toLifecycleRecord,
} from "./lifecycle-record.ts";
import { type Lifecycle, UNINITIALIZED } from "./machine.ts";
import type { Surroundings } from "./settings.ts";
import { shardBytes } from "./shard-bytes.ts";

/** A parameter as its record holds it. The epoch of its blocks is that of its own lifecycle. */
export interface Parameter {
  readonly declaration: Declaration;
  readonly layout: Layout;
  /** The most blocks it had under any epoch: some of an earlier cut may still be there. */
  readonly blocksMax: number;
  /** Epoch of the job's initialization that declared it; 0 if it was created by itself. */
  readonly jobEpoch: number;
  readonly lifecycle: Lifecycle;
  /** Revision of the record; 0 if it has not been written yet. */
  readonly revision: number;
}

/** A parameter that nobody has begun to initialize. */
export function newParameter(around: Surroundings, declaration: Declaration): Parameter {
  const layout = layoutOf(around, declaration);
  return {
    declaration,
    layout,
    blocksMax: layout.blocks,
    jobEpoch: 0,
    lifecycle: UNINITIALIZED,
    revision: 0,
  };
}

/**
 * The parameter with the declaration of a new initialization, and the machine where it stands.
 * @throws TOO_LARGE if it could not be held even alone.
 */
export function redeclare(
  around: Surroundings,
  known: Parameter | undefined,
  declaration: Declaration,
): Parameter {
  const fresh = newParameter(around, declaration);
  if (known === undefined) return fresh;
  const blocksMax = Math.max(known.blocksMax, fresh.layout.blocks);
  return { ...known, declaration, layout: fresh.layout, blocksMax };
}

/**
 * Where a parameter stands. One that was declared for the job follows the job: `sealed` leaves
 * out what a late declare wrote after `finish` had looked. "uninitialized": what there is of it
 * was left by an initialization that has ended.
 */
export function standing(parameter: Parameter, job: Lifecycle): LifecycleState {
  const { lifecycle, jobEpoch, revision } = parameter;
  if (jobEpoch === 0 || lifecycle.state === "ready") return lifecycle.state;
  if (jobEpoch !== job.context.epoch) return "uninitialized";
  if (job.state !== "ready") return job.state;
  return revision <= job.context.sealed ? "ready" : "uninitialized";
}

/** The record of a parameter: readable JSON. */
export function toParameterRecord(parameter: Parameter): unknown {
  const { declaration, layout, blocksMax, jobEpoch, lifecycle } = parameter;
  return {
    format: RECORD_FORMAT,
    ...declaration,
    layout,
    blocksMax,
    jobEpoch,
    lifecycle: toLifecycleRecord(lifecycle),
  };
}

/**
 * The parameter in a record.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseParameterRecord(
  stored: StoredRecord | undefined,
  name: string,
): Parameter | undefined {
  if (stored === undefined) return undefined;
  const key = parameterKey(name);
  return readRecord(stored.value, key, (fields) => {
    const lifecycle = parseLifecycleRecord(asMap(fields["lifecycle"], "lifecycle"), key);
    const {
      epoch: _epoch,
      ready: _ready,
      layout,
      ...declaration
    } = parseParameterInfo({
      ...fields,
      epoch: lifecycle.context.epoch,
    });
    return {
      declaration,
      layout,
      blocksMax: integerField(fields, "blocksMax", layout.blocks),
      jobEpoch: integerField(fields, "jobEpoch"),
      lifecycle,
      revision: stored.revision,
    };
  });
}

/**
 * Passes if two declarations of one parameter say the same.
 * @throws BAD_CONFIG naming what was expected and what was received.
 */
export function requireSameDeclaration(expected: Declaration, received: Declaration): void {
  if (isDeepStrictEqual(expected, received)) return;
  const { name } = expected;
  throw new PserverError(
    "BAD_CONFIG",
    `${quoteName(name)} was declared in another way: ` +
      `expected ${describe(expected)}; received ${describe(received)}`,
    { parameter: name, expected, received },
  );
}

function layoutOf(around: Surroundings, declaration: Declaration): Layout {
  const { name, dtype, shape, config } = declaration;
  const { shards } = around.job;
  const layout = computeLayout({
    name,
    dtype,
    shape,
    shards,
    maxPayloadBytes: around.maxPayloadBytes,
    wholeRows: config.sparse,
  });
  // Bounded before its blocks are listed: a shape of 2^50 elements must not cost memory here.
  const valueBytes = layout.elements * DTYPES[dtype].bytes;
  if (valueBytes > SHARD_BYTES_MAX * shards) throw tooLarge(name, valueBytes, shards);
  const bytes = shardBytes([{ declaration, layout }], around.job);
  if (Math.max(...bytes) <= SHARD_BYTES_MAX) return layout;
  const heldBytes = bytes.reduce((sum, held) => sum + held, 0);
  throw tooLarge(name, heldBytes, shards);
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
