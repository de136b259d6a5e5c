// The parts of a client that has joined a job, as they are, on a fake connection: hosts answer joins and
// look-ups by themselves, the test plays the owners of the shards.
import { setImmediate as turn } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { Deadline } from "../../src/client/calls/calls.ts";
import { ClientParts } from "../../src/client/client.ts";
import type { ShardFallback } from "../../src/client/io/fallbacks.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  hashName,
  JobSubjects,
  type ParameterConfigInput,
  type ParameterInfo,
  toConfig,
} from "../../src/protocol/index.ts";
import { FakeWire, type Published } from "../support/fake-wire.ts";

/** A float32 parameter of four elements, in one block of shard 0 if nothing else is said. */
export function parameter(
  name: string,
  config: ParameterConfigInput = { learningRate: 1 },
  more: Partial<ParameterInfo> = {},
): ParameterInfo {
  const layout = { elements: 4, blockElements: 4, blocks: 1, firstShard: 0, shards: 1 };
  const info = { name, dtype: "float32", shape: [4], epoch: 1, ready: true, layout } as const;
  return {
    ...info,
    firstNumber: 1 + (hashName(name) % 2 ** 31),
    config: toConfig(config),
    ...more,
  };
}

/** A connection to hosts that know these parameters. */
export class JobWire extends FakeWire {
  /** Names of each look-up. */
  readonly lookedUp: string[][] = [];
  readonly #infos: ReadonlyMap<string, ParameterInfo>;

  constructor(infos: readonly ParameterInfo[]) {
    super();
    this.#infos = new Map(infos.map((info) => [info.name, info]));
  }

  override publish(subject: string, bytes: Uint8Array, reply: string): void {
    super.publish(subject, bytes, reply);
    if (!subject.startsWith("ps.j.lifecycle.")) return;
    const answer = this.#answer(subject.split(".").at(-1), decodeMessage(bytes).fields);
    // In a later turn of the event loop, as from a broker.
    setImmediate(() => this.deliver(reply, encodeMessage(answer)));
  }

  /** Records and requests for owners that were published since the last call. */
  taken(): Published[] {
    const all = this.published.splice(0);
    return all.filter(({ subject }) => !subject.startsWith("ps.j.lifecycle."));
  }

  #answer(verb: string | undefined, fields: Fields): Fields {
    if (verb === "status") {
      const names = fields["names"] as string[];
      this.lookedUp.push(names);
      const parameters = names.map((name) => {
        const info = this.#infos.get(name);
        return info === undefined ? null : { ...info };
      });
      return { state: "ready", epoch: 1, by: "", shards: 1, parameters, more: false, at: [] };
    }
    const settings = {
      made: "now",
      shards: 1,
      leaseMs: 600_000,
      journal: "file",
      maxPayloadBytes: 8_000_000,
    };
    return { session: 5, synchronization: { mode: "async" }, ...settings };
  }
}

/** A client that has joined a job with these parameters as session 5. */
export async function joinedClient(
  infos: readonly ParameterInfo[],
): Promise<{ wire: JobWire; parts: ClientParts; fallbacks: ShardFallback[] }> {
  const wire = new JobWire(infos);
  const fallbacks: ShardFallback[] = [];
  const parts = new ClientParts({
    wire,
    control: wire.control,
    subjects: new JobSubjects("j"),
    trainer: "t",
    fail: (error) => {
      throw error;
    },
    onFallback: (fallback) => fallbacks.push(fallback),
  });
  onTestFinished(() => parts.stop());
  await parts.session.join(deadline());
  return { wire, parts, fallbacks };
}

/** A deadline that is given up with the test. */
export function deadline(): Deadline {
  const made = Deadline.start("call", { timeoutMs: 30_000 });
  onTestFinished(() => made.dispose());
  return made;
}

/** Lets everything happen that can without the test. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn();
}
