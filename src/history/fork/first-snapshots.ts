import type { NatsConnection } from "@nats-io/transport-node";
import type { Shard } from "../../actors/fold/shard.ts";
import { SnapshotBudget } from "../../actors/snapshot/snapshot-budget.ts";
import { Snapshotter } from "../../actors/snapshot/snapshotter.ts";
import { SnapshotStore } from "../../actors/snapshot/store.ts";
import { JobSubjects } from "../../protocol/index.ts";
import { BufferPool } from "../../transport/buffer-pool.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { dataBytesMaxOf } from "../../transport/payload-limit.ts";
import { StreamPublisher } from "../../transport/stream-publisher.ts";

/** Dependencies of {@link FirstSnapshots}. */
export interface FirstSnapshotsDeps {
  readonly connection: NatsConnection;
  /** The id of the connection's inbox. */
  readonly host: string;
  readonly job: string;
  /** Token in the manifests. */
  readonly owner: string;
}

/** Commits shards as the first snapshots of a new job, from which its hosts go on. */
export class FirstSnapshots {
  readonly #deps: FirstSnapshotsDeps;
  readonly #subjects: JobSubjects;
  readonly #publisher: StreamPublisher;
  readonly #budget = new SnapshotBudget(new BufferPool());

  private constructor(deps: FirstSnapshotsDeps, subjects: JobSubjects, publisher: StreamPublisher) {
    this.#deps = deps;
    this.#subjects = subjects;
    this.#publisher = publisher;
  }

  /** Listens for the broker's answers from now on. */
  static open(deps: FirstSnapshotsDeps): FirstSnapshots {
    const { connection, host, job } = deps;
    const subjects = new JobSubjects(job);
    const publisher = StreamPublisher.open(connection, subjects.hostInbox(host));
    return new FirstSnapshots(deps, subjects, publisher);
  }

  /** Stores all of a shard, and the manifest that hosts take it over by. @throws NOT_OWNER, NO_SPACE */
  async commit(number: number, shard: Shard): Promise<void> {
    const { connection, host, owner } = this.#deps;
    const client = openJetStream(connection);
    const manager = await client.jetstreamManager(false);
    const [publisher, subjects, budget] = [this.#publisher, this.#subjects, this.#budget];
    const store = new SnapshotStore({ manager, client, publisher, subjects, shard: number });
    const partBytesMax = dataBytesMaxOf(connection);
    // An interrupted run may have left one.
    const previous = await store.lastManifest();
    const head = {
      term: (previous?.manifest.term ?? 0) + 1,
      ...{ host, owner, generation: 1, created: "", fallbacks: [] },
    };
    const snapshotter = new Snapshotter({
      ...{ store, subjects, shard: number, partBytesMax, budget, stored: new Map() },
      onProgress: () => undefined,
    });
    await snapshotter.cut(
      shard,
      () => head,
      () => previous?.seq ?? 0,
      () => undefined,
    );
  }
}
