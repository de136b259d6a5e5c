import type { ReadDeps } from "./bucket-record.ts";
import type { Lifecycle } from "./machine.ts";
import { effectiveState, type Parameter } from "./parameter.ts";
import { parameterRecord } from "./parameter-record.ts";

/**
 * Reads parameters, and keeps those that are ready: nobody changes their records any more. Keeping them
 * spares a request to the broker for each name that a trainer asks for.
 */
export class ReadyParameters {
  readonly #deps: ReadDeps;
  readonly #ready: Map<string, Parameter> = new Map();

  constructor(deps: ReadDeps) {
    this.#deps = deps;
  }

  /** The parameter of this name; undefined if it was never declared. */
  async read(name: string): Promise<Parameter | undefined> {
    return this.#ready.get(name) ?? (await parameterRecord(name).read(this.#deps));
  }

  /** Keeps those that are ready in a job that was read after them. */
  note(parameters: readonly (Parameter | undefined)[], job: Lifecycle): void {
    for (const parameter of parameters) {
      if (parameter === undefined || effectiveState(parameter, job) !== "ready") continue;
      this.#ready.set(parameter.declaration.name, parameter);
    }
  }
}
