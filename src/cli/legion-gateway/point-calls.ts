import type { CallOptions } from "../../client/calls/calls.ts";
import type { Client } from "../../client/client.ts";
import { allocateData, type Dtype } from "../../protocol/dtypes.ts";
import { mismatch } from "../../protocol/errors.ts";
import type { WireArray } from "./frames.ts";
import { toProducts } from "./points.ts";
import type { Mix } from "./requests.ts";

/** Pulls that are under way at once. */
const PULLS_MAX = 16;

/** Reads and writes single elements of a parameter with calls that take cartesian products. */
export class PointCalls {
  readonly #client: Client;
  readonly #call: CallOptions;

  constructor(client: Client, call: CallOptions) {
    this.#client = client;
    this.#call = call;
  }

  /** The elements at points, in their order, with one call for each product of the points. */
  async pull(name: string, points: readonly number[][], dtype: Dtype): Promise<WireArray> {
    const data = allocateData(dtype, points.length);
    const places = samePoints(points);
    const products = toProducts(points).values();
    const pullInTurn = async (): Promise<void> => {
      for (const product of products) {
        const { lists } = product;
        const pulled = await this.#client.pullPart(name, lists, this.#call);
        product.places.forEach((place, i) => {
          for (const same of places.get(points[place]?.join() ?? "") ?? []) {
            data[same] = pulled.data[i] ?? 0;
          }
        });
      }
    };
    await Promise.all(Array.from({ length: PULLS_MAX }, pullInTurn));
    return { dtype, shape: [points.length], data };
  }

  /**
   * value = alpha · value + beta · array at points; the last value counts for a point that occurs
   * repeatedly. Each product of the points is an update of its own.
   * @throws BAD_SHAPE, before anything is sent, unless there is a value for each point.
   */
  async push(
    name: string,
    points: readonly number[][],
    { dtype, data }: WireArray,
    { alpha, beta }: Mix,
  ): Promise<void> {
    if (data.length !== points.length) {
      const expected = `one for each of ${points.length} points`;
      throw mismatch("BAD_SHAPE", "values", expected, data.length);
    }
    for (const { lists, places } of toProducts(points)) {
      const values = allocateData(dtype, places.length);
      places.forEach((place, i) => {
        values[i] = data[place] ?? 0;
      });
      const tensor = { dtype, shape: lists.map((list) => list.length), data: values };
      await this.#client.pushAsPart(name, tensor, lists, alpha, beta, this.#call);
    }
  }
}

/** The places of each point, by its numbers. */
function samePoints(points: readonly number[][]): ReadonlyMap<string, number[]> {
  const places = new Map<string, number[]>();
  points.forEach((point, place) => {
    const key = point.join();
    const same = places.get(key);
    if (same === undefined) places.set(key, [place]);
    else same.push(place);
  });
  return places;
}
