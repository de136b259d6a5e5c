import {
  asMap,
  integerField,
  PserverError,
  parseParameterInfo,
  quoteName,
} from "../../protocol/index.ts";
import type { KvBucket, KvEntry } from "../jetstream/kv-bucket.ts";
import { type BucketDeps, BucketRecord } from "./bucket-record.ts";
import { parseLifecycleRecord, toLifecycleRecord } from "./lifecycle-record.ts";
import type { Parameter } from "./parameter.ts";
import {
  PARAMETER_KEYS,
  parameterKey,
  parameterOfKey,
  RECORD_FORMAT,
  readRecord,
} from "./record-format.ts";

/** The record of a parameter: readable JSON. */
export function toParameterRecord(parameter: Parameter): unknown {
  const { declaration, layout, blocksMax, jobEpoch } = parameter;
  const lifecycle = toLifecycleRecord(parameter.lifecycle);
  return { format: RECORD_FORMAT, ...declaration, layout, blocksMax, jobEpoch, lifecycle };
}

/**
 * The parameter in a record; undefined if there is none.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseParameterRecord(
  stored: KvEntry | undefined,
  name: string,
): Parameter | undefined {
  if (stored === undefined) return undefined;
  const key = parameterKey(name);
  return readRecord(stored.value, key, (fields) => {
    const lifecycle = parseLifecycleRecord(asMap(fields["lifecycle"], "lifecycle"), key);
    const { epoch } = lifecycle.context;
    const info = parseParameterInfo({ ...fields, epoch });
    const { epoch: _epoch, ready: _ready, layout, ...declaration } = info;
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

/** The record of a parameter; undefined if it was never declared. */
export function parameterRecord(name: string): BucketRecord<Parameter | undefined, Parameter> {
  return new BucketRecord<Parameter | undefined, Parameter>(
    parameterKey(name),
    (stored) => parseParameterRecord(stored, name),
    toParameterRecord,
  );
}

/** Every parameter that was ever declared, in no order. */
export async function readAllParameters(bucket: Pick<KvBucket, "changes">): Promise<Parameter[]> {
  const parameters = new Map<string, Parameter>();
  await bucket.changes(PARAMETER_KEYS, 0, (key, entry) => {
    const parameter = parseParameterRecord(entry, parameterOfKey(key));
    if (parameter !== undefined) parameters.set(key, parameter);
  });
  return [...parameters.values()];
}

/**
 * Changes a parameter as {@link BucketRecord.change} does and returns it as it is then. `first`: it is known already,
 * or none is known.
 */
export async function changeParameter(
  deps: BucketDeps,
  name: string,
  decide: (known: Parameter | undefined) => Parameter | Promise<Parameter>,
  first?: { readonly known: Parameter | undefined },
): Promise<Parameter> {
  const present = first && { result: first.known, revision: first.known?.revision ?? 0 };
  const { result, revision } = await parameterRecord(name).change(deps, decide, present);
  return { ...result, revision };
}

/** Returns the parameter; @throws UNKNOWN_PARAMETER if there is none. */
export function requireKnown(known: Parameter | undefined, name: string): Parameter {
  if (known !== undefined) return known;
  throw new PserverError("UNKNOWN_PARAMETER", `no parameter ${quoteName(name)}`, {
    parameter: name,
  });
}
