import type { Client } from "../../client/client.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";

/** Type and shape of a parameter, which the gateway needs to move its values. */
export type KnownParameter = Pick<ParameterInfo, "dtype" | "shape">;

/** Cache of the parameters that have values. A parameter is never removed, so it is looked up once. */
export class KnownParameters {
  readonly #client: Client;
  readonly #timeoutMs: number;
  readonly #known = new Map<string, KnownParameter>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(client: Client, timeoutMs: number) {
    this.#client = client;
    this.#timeoutMs = timeoutMs;
  }

  /** The parameter, unless it has no values yet. */
  async find(name: string): Promise<KnownParameter | undefined> {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    for (const info of await this.#client.listParams({ timeoutMs: this.#timeoutMs })) {
      if (info.ready) this.add(info.name, info);
    }
    return this.#known.get(name);
  }

  /** @throws UNKNOWN_PARAMETER for one that nobody has created. */
  async require(name: string): Promise<KnownParameter> {
    const known = await this.find(name);
    if (known !== undefined) return known;
    throw new PserverError("UNKNOWN_PARAMETER", `${quoteName(name)} has not been created`, {
      parameter: name,
    });
  }

  add(name: string, { dtype, shape }: KnownParameter): void {
    this.#known.set(name, { dtype, shape });
  }

  /** Runs `create` after all earlier calls for this parameter have ended, well or not. */
  async inTurn<T>(name: string, create: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.then(create, create);
    this.#turns.set(name, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    }
  }
}
