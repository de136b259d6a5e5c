import type { Shard, ShardOptions } from "../../../../src/actors/fold/shard.ts";
import type { SynchronizationInput } from "../../../../src/protocol/config/index.ts";
import type { Contribution } from "../../../../src/protocol/messages/contributions.ts";
import type { Outcome } from "../../../../src/protocol/messages/outcomes.ts";
import { elementsOf, Folded } from "../folded.ts";
import type { Sender } from "../journal-writer.ts";
import type { ContributedBlock } from "./contribution-payload.ts";

/** Members of the job unless a test says otherwise. */
export const MEMBERS = ["alice", "bob", "carol"];

/** The outer rule whose result is the value less the merged displacement, which is easy to see. */
export const DESCENT = { optimizer: "sgd", learningRate: 1 };

/** A shard of a `diloco` job with a fragment `f` of two parameters, `u` of 4 and `w` of 3 elements, all 0. */
export class FragmentJob extends Folded {
  #revision = 0;

  constructor(
    settings: Partial<Extract<SynchronizationInput, { mode: "diloco" }>> = {},
    config: object = DESCENT,
    options: Partial<ShardOptions> & { readonly started?: boolean } = {},
  ) {
    super({ mode: "diloco", weights: "uniform", merge: "mean", ...settings }, options);
    this.parameter("u", new Float32Array(4), config);
    this.parameter("w", new Float32Array(3), config);
    this.members(MEMBERS, options.started);
    this.apply();
  }

  /** Declares and initializes a parameter of the fragment. */
  parameter(parameter: string, data: Float32Array | Float64Array, config: object = DESCENT): void {
    this.journal.init(data, { trainer: "init", parameter, config: { fragment: "f", ...config } });
  }

  members(trainers: readonly string[], started = true): void {
    this.#revision += 1;
    this.journal.host({ verb: "members", revision: this.#revision, started, trainers });
  }

  /** Contributes these values to all elements of `u` and `w`; returns the outcome. */
  contribute(
    trainer: string,
    u: readonly number[] | number,
    w: readonly number[] | number = u,
    said: Partial<Contribution> = {},
    sender: Sender = {},
  ): Outcome {
    return this.send(trainer, both(u, w), said, sender);
  }

  /** Sends a record of a contribution; returns its outcome. */
  send(
    trainer: string,
    blocks: readonly ContributedBlock[],
    said: Partial<Contribution> = {},
    sender: Sender = {},
  ): Outcome {
    this.journal.contribute(said, blocks, { trainer, ...sender });
    return this.run().at(-1) as Outcome;
  }

  /** Closes the open round, or another one. */
  close(contributions: number, round = this.version + 1, fragment = "f"): void {
    this.journal.host({ verb: "close", fragment, round, contributions });
    this.run();
  }

  /** Goes on with another shard that has folded the same records. */
  on(shard: Shard): this {
    this.shard = shard;
    return this;
  }

  get version(): number {
    return this.shard.fragmentVersion("f") ?? 0;
  }

  values(parameter = "w"): number[] {
    return [...elementsOf(this.block(parameter).values(), Float32Array)];
  }

  account(trainer: string): number[] {
    const { processed, merged, late, dropped } = this.shard.fragments.ledger.of(trainer);
    return [processed, merged, late, dropped].map(({ contributions }) => contributions);
  }
}

/** The blocks of both parameters with these elements. */
export function both(
  u: readonly number[] | number,
  w: readonly number[] | number,
): ContributedBlock[] {
  return [
    { parameter: "u", data: filled(u, 4) },
    { parameter: "w", data: filled(w, 3) },
  ];
}

function filled(value: readonly number[] | number, length: number): Float32Array {
  return typeof value === "number"
    ? new Float32Array(length).fill(value)
    : Float32Array.from(value);
}
