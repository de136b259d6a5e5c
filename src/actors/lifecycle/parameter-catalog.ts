import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { type Lifecycle, type LifecycleContext, UNINITIALIZED } from "./machine.ts";
import type { Parameter } from "./parameter.ts";
import { parseParameterRecord } from "./parameter-record.ts";
import { PARAMETER_KEYS, parameterOfKey } from "./record-format.ts";

/** Called with a parameter whenever the catalog gets a newer record of it. */
export type OnParameter = (parameter: Parameter) => void;

/**
 * The parameters of a job as this host knows them: as it has written them, and as others had when it last looked.
 * Nothing may be decided on them unless a compare-and-swap fails if they are outdated, or they cannot be.
 *
 * Memory: about 1 KB for each name that was ever declared. `Quotas.parametersMax` bounds their number.
 */
export class ParameterCatalog {
  readonly #bucket: Pick<KvBucket, "changes">;
  readonly #onParameter: OnParameter;
  readonly #parameters: Map<string, Parameter> = new Map();
  /** In order of code units; undefined after a name was added. */
  #names: readonly string[] | undefined;
  /** Of the job when it was followed last. */
  #followed: Pick<LifecycleContext, "sealed" | "revised"> = UNINITIALIZED.context;
  /** Every record up to this revision is known. */
  #readUpTo = 0;
  /** Ends when the reading under way does. */
  #reading: Promise<void> = Promise.resolve();
  /** A reading that has not begun. */
  #next: Promise<void> | undefined;

  constructor(bucket: Pick<KvBucket, "changes">, onParameter: OnParameter) {
    this.#bucket = bucket;
    this.#onParameter = onParameter;
  }

  /** The parameter of this name; undefined if none is known. */
  get(name: string): Parameter | undefined {
    return this.#parameters.get(name);
  }

  /** Every known parameter, in no order. */
  all(): Parameter[] {
    return [...this.#parameters.values()];
  }

  /** Up to `limit` known parameters whose names follow `after`, in order of code units, and whether more follow. */
  page(after: string, limit: number): { parameters: Parameter[]; more: boolean } {
    this.#names ??= [...this.#parameters.keys()].sort();
    const first = placeAfter(this.#names, after);
    const parameters = this.#names
      .slice(first, first + limit)
      .map((name) => this.#parameters.get(name))
      .filter((parameter) => parameter !== undefined);
    return { parameters, more: first + limit < this.#names.length };
  }

  /** Keeps parameters as they have just been written or read, unless a newer record is known. */
  note(parameters: readonly Parameter[]): void {
    for (const parameter of parameters) {
      const { name } = parameter.declaration;
      const known = this.#parameters.get(name);
      if (known !== undefined && known.revision >= parameter.revision) continue;
      if (known === undefined) this.#names = undefined;
      this.#parameters.set(name, parameter);
      this.#onParameter(parameter);
    }
  }

  /**
   * As {@link refresh}, if the job has been initialized or revised since the last call: only then parameters
   * change that were ready. Returns whether it has read.
   */
  async follow({ context }: Lifecycle): Promise<boolean> {
    const { sealed, revised } = this.#followed;
    if (context.sealed === sealed && context.revised === revised) return false;
    await this.refresh();
    this.#followed = context;
    return true;
  }

  /**
   * Reads what others have written before this call. Calls that come while one is reading share the next reading.
   * @throws as `KvBucket` does; the next call then reads on.
   */
  refresh(): Promise<void> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      const read = this.#read();
      this.#reading = read.catch(() => undefined);
      return read;
    });
    return this.#next;
  }

  async #read(): Promise<void> {
    this.#readUpTo = await this.#bucket.changes(PARAMETER_KEYS, this.#readUpTo, (key, entry) => {
      const name = parameterOfKey(key);
      // Most are this host's own records, which need not be parsed.
      if ((this.#parameters.get(name)?.revision ?? 0) >= entry.revision) return;
      const parameter = parseParameterRecord(entry, name);
      if (parameter !== undefined) this.note([parameter]);
    });
  }
}

/** Place of the first of sorted names that follows `after`. */
function placeAfter(names: readonly string[], after: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] ?? "") <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
