import type { Client } from "../../client/client.ts";
import { bytesOf } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { fitDtype } from "./fit-dtype.ts";
import type { ArrayHeader } from "./frames.ts";
import type { KnownParameter, KnownParameters } from "./known-parameters.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { PointCalls } from "./point-calls.ts";
import { POINT_BYTES, parsePoints } from "./points.ts";
import { type LegionRequest, type Mix, type Named, type Part, QUERY } from "./requests.ts";
import { savePath } from "./save-path.ts";
import { type LegionWire, replyBytes } from "./wire.ts";

/** Dependencies of {@link RequestHandler}. */
export interface HandlerOptions {
  readonly client: Client;
  readonly parameters: KnownParameters;
  readonly budget: MemoryBudget;
  /** For one call of the client. */
  readonly timeoutMs: number;
  /** Ends what is under way. */
  readonly signal: AbortSignal;
  /** Reports results for which Legion's protocol has no reply. */
  readonly tell: (text: string) => void;
}

/** Serves the requests of one connection, one after the other, with calls of the client. */
export class RequestHandler {
  readonly #options: HandlerOptions;
  readonly #points: PointCalls;

  constructor(options: HandlerOptions) {
    this.#options = options;
    this.#points = new PointCalls(options.client, this.#call);
  }

  /**
   * Reads the arrays of the request, executes it, and replies if Legion's protocol has a reply.
   * @throws the error in the request or of the wire, and what the client throws.
   */
  async handle(request: LegionRequest, wire: LegionWire): Promise<void> {
    switch (request.query) {
      case "pullFull":
        return await this.#pullFull(request, wire);
      case "pullPart":
        return await this.#pullPart(request, wire);
      case "pushFull":
        return await this.#pushFull(request, wire);
      case "pushPart":
        return await this.#pushPart(request, wire);
      case "pushFromIndices":
        return await this.#pushFromIndices(request, wire);
      case "pullFromIndices":
        return await this.#pullFromIndices(request, wire);
      case "createIfAbsent":
        return await this.#options.parameters.inTurn(request.name, () =>
          this.#create(request, wire),
        );
      case "save":
        return await this.#save(request);
    }
  }

  async #pullFull({ name }: Named, wire: LegionWire): Promise<void> {
    await this.#replyWithValue(await this.#options.parameters.require(name), name, wire, async () =>
      wire.sendJson({ query_id: QUERY.answerPullFull, query_name: "answer_pull_full", name }),
    );
  }

  async #pullPart({ name, axes }: Part, wire: LegionWire): Promise<void> {
    const { client } = this.#options;
    const { dtype } = await this.#options.parameters.require(name);
    const bytes = replyBytes("pull_part", { dtype, shape: axes.map((list) => list.length) });
    await this.#withBytes(2 * bytes, async () =>
      wire.sendArray(await client.pullPart(name, axes, this.#call)),
    );
  }

  async #pushFull({ name, alpha, beta }: Named & Mix, wire: LegionWire): Promise<void> {
    const { client } = this.#options;
    await this.#withArray(wire, name, async (array) =>
      client.pushFull(name, array, alpha, beta, this.#call),
    );
  }

  async #pushPart({ name, axes, alpha, beta }: Part & Mix, wire: LegionWire): Promise<void> {
    const { client } = this.#options;
    await this.#withArray(wire, name, async (array) =>
      client.pushAsPart(name, array, axes, alpha, beta, this.#call),
    );
  }

  async #pushFromIndices({ name, alpha, beta }: Named & Mix, wire: LegionWire): Promise<void> {
    await this.#withPoints(wire, name, async (points, { dtype }) => {
      const valuesMax = points.length * Float64Array.BYTES_PER_ELEMENT;
      const values = await wire.readArrayHeader("values", valuesMax);
      const array = fitDtype(name, await wire.readElements(values, "values"), dtype);
      await this.#points.push(name, points, array, { alpha, beta });
    });
  }

  async #pullFromIndices({ name }: Named, wire: LegionWire): Promise<void> {
    await this.#withPoints(wire, name, async (points, { dtype }) =>
      wire.sendArray(await this.#points.pull(name, points, dtype)),
    );
  }

  /** Runs `use` with the indices that follow a request, and the parameter that they are of. */
  async #withPoints(
    wire: LegionWire,
    name: string,
    use: (points: number[][], known: KnownParameter) => Promise<void>,
  ): Promise<void> {
    const known = await this.#options.parameters.require(name);
    const header = await wire.readArrayHeader("indices", this.#options.budget.bytesMax);
    await this.#withBytes(bytesOfPoints(header), async () =>
      use(parsePoints(await wire.readElements(header, "indices"), known.shape), known),
    );
  }

  async #create({ name }: Named, wire: LegionWire): Promise<void> {
    const { client, parameters, budget } = this.#options;
    const known = await parameters.find(name);
    if (known !== undefined) {
      await this.#replyWithValue(known, name, wire, async () =>
        wire.sendJson({ requesting_param: false }),
      );
      return;
    }
    await wire.sendJson({ requesting_param: true });
    const header = await wire.readArrayHeader(quoteName(name), budget.bytesMax);
    await this.#withBytes(2 * header.bytes, async () => {
      const array = await wire.readElements(header, quoteName(name));
      const config = {};
      const settled = await client.createIfNotAlreadyCreated(name, array, config, this.#call);
      parameters.add(name, settled);
      if (Buffer.compare(bytesOf(settled.data), bytesOf(array.data)) !== 0) throw lost(name);
    });
  }

  async #save({ path }: { readonly path: string }): Promise<void> {
    const { client, signal, tell } = this.#options;
    const { file, bytes, host } = await client.saveModel(savePath(path), { signal });
    const where = host === undefined ? "" : ` of host ${host}`;
    tell(`saved ${bytes} bytes below the model directory${where}: ${file}`);
  }

  async #replyWithValue(
    known: KnownParameter,
    name: string,
    wire: LegionWire,
    announce: () => Promise<void>,
  ): Promise<void> {
    await this.#withBytes(replyBytes(quoteName(name), known), async () => {
      const value = await this.#options.client.pullFull(name, this.#call);
      await announce();
      await wire.sendArray(value);
    });
  }

  /** Reads the array of a push, in the parameter's type. */
  async #withArray(
    wire: LegionWire,
    name: string,
    push: (array: ReturnType<typeof fitDtype>) => Promise<void>,
  ): Promise<void> {
    const { parameters, budget } = this.#options;
    const { dtype } = await parameters.require(name);
    const header = await wire.readArrayHeader(quoteName(name), budget.bytesMax);
    const fittedBytes = header.elements * Float64Array.BYTES_PER_ELEMENT;
    await this.#withBytes(header.bytes + fittedBytes, async () => {
      await push(fitDtype(name, await wire.readElements(header, quoteName(name)), dtype));
    });
  }

  #withBytes(bytes: number, work: () => Promise<void>): Promise<void> {
    const { budget, signal } = this.#options;
    return budget.with(bytes, signal, work);
  }

  get #call(): { readonly timeoutMs: number; readonly signal: AbortSignal } {
    const { timeoutMs, signal } = this.#options;
    return { timeoutMs, signal };
  }
}

function bytesOfPoints({ bytes, shape: [points = 0] }: ArrayHeader): number {
  return bytes + points * POINT_BYTES;
}

function lost(name: string): PserverError {
  return new PserverError(
    "ALREADY_INITIALIZED",
    `${quoteName(name)} was created with another value by another trainer meanwhile, and this protocol cannot send it now: connect again to get it`,
    { parameter: name },
  );
}
