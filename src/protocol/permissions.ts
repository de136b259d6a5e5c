import { escapeId } from "./names.ts";
import {
  BLOCKLESS_VERBS,
  CONTROL_VERBS,
  HOST_VERBS,
  HOSTS_QUEUE,
  JobSubjects,
  LIFECYCLE_VERBS,
  OWNER_VERBS,
  TRAINER_REQUESTS,
  TRAINER_VERBS,
} from "./subjects.ts";

/** What a user of the broker may do: lists of subjects with wildcards. Everything else is denied. */
export interface Permissions {
  readonly publish: readonly string[];
  /** A subscription in a queue group is followed by a space and the name of the group. */
  readonly subscribe: readonly string[];
}

/** Ids under which the users `observer` and `admin` appear to hosts; no trainer may have one of them. */
export const OBSERVER_ID = "observer";
/** See {@link OBSERVER_ID}. */
export const ADMIN_ID = "admin";

/** What a host asks of JetStream. The last token is any stream of its account: a wildcard matches no part of a name. */
const HOST_API = [
  "INFO",
  "STREAM.INFO.*",
  // For journals in memory after a restart of the broker, in a cluster, and for `pserver recover`.
  "STREAM.NAMES",
  // For the number of copies in a cluster, in `pserver status`.
  "STREAM.LIST",
  "STREAM.CREATE.*",
  "STREAM.UPDATE.*",
  "STREAM.PURGE.*",
  // For the stream that is made to see whether the broker has enough storage.
  "STREAM.DELETE.*",
  "STREAM.MSG.GET.*",
  "STREAM.MSG.DELETE.*",
  "DIRECT.GET.*",
  "CONSUMER.CREATE.*.>",
  "CONSUMER.DELETE.*.*",
  "CONSUMER.INFO.*.*",
  "CONSUMER.MSG.NEXT.*.*",
].map((call) => `$JS.API.${call}`);

/**
 * The permissions of the users of one job, by role. Hosts, answers and admin belong into one account of the broker,
 * which holds the job's streams; trainers and observer into another one, to which {@link JobPermissions.shared} leads.
 */
export class JobPermissions {
  readonly #subjects: JobSubjects;
  readonly #root: string;

  /** @throws BAD_NAME if the job's name is not valid. */
  constructor(job: string) {
    this.#subjects = new JobSubjects(job);
    this.#root = `ps.${job}`;
  }

  /**
   * What a host's own work takes: settings, leases, journals, snapshots; and, for the page that it serves, what the
   * observer may. It answers nobody.
   */
  get host(): Permissions {
    const { publish, subscribe } = this.observer;
    return {
      publish: [...HOST_API, ...this.#hostWork(), ...publish],
      subscribe: [`${this.#hostInboxes()}.>`, ...subscribe],
    };
  }

  /**
   * What answering trainers takes, and other hosts. It writes only to inboxes; below `_R_` the broker delivers to
   * askers of the other account.
   */
  get answers(): Permissions {
    const requests = this.#subjects.shardRequests(0);
    return {
      publish: [`${this.#inboxes()}.>`, "_R_.>"],
      subscribe: [
        `${this.#subjects.allLifecycle()} ${HOSTS_QUEUE}`,
        `${this.#subjects.allControl()} ${HOSTS_QUEUE}`,
        this.#subjects.allStops(),
        `${this.#subjects.allPresences()} ${HOSTS_QUEUE}`,
        this.#subjects.allPulls(),
        ...Object.values(requests).map(ofAnyShard),
      ],
    };
  }

  /** What a trainer with this id does, and what it asks hosts: all under its own id. */
  trainer(id: string): Permissions {
    const token = escapeId(id);
    const log = `${this.#root}.log.*.trainer.${token}`;
    return {
      publish: [
        ...TRAINER_VERBS.map((verb) => `${log}.${verb}.*.*`),
        ...BLOCKLESS_VERBS.map((verb) => `${log}.${verb}`),
        `${this.#root}.block.*.*.${token}.pull`,
        ...TRAINER_REQUESTS.map((verb) => `${this.#root}.shard.*.${token}.${verb}`),
        ...LIFECYCLE_VERBS.map((verb) => this.#subjects.lifecycle(id, verb)),
        ...CONTROL_VERBS.map((verb) => this.#subjects.control(id, verb)),
      ],
      subscribe: [`${this.#subjects.inbox(id)}.>`],
    };
  }

  /** What looking at the job and its values takes; changes nothing. */
  get observer(): Permissions {
    return {
      publish: [
        `${this.#root}.block.*.*.${OBSERVER_ID}.pull`,
        this.#subjects.lifecycle(OBSERVER_ID, "status"),
        this.#subjects.control(OBSERVER_ID, "hosts"),
        this.#subjects.control(OBSERVER_ID, "versions"),
      ],
      subscribe: [`${this.#subjects.inbox(OBSERVER_ID)}.>`],
    };
  }

  /** What an operator's commands take: all that a host and a trainer may, and the whole API of JetStream. */
  get admin(): Permissions {
    const [asObserver, asTrainer] = [this.observer, this.trainer(ADMIN_ID)];
    return {
      publish: ["$JS.API.>", ...this.#hostWork(), ...asObserver.publish, ...asTrainer.publish],
      subscribe: [`${this.#hostInboxes()}.>`, ...asObserver.subscribe, ...asTrainer.subscribe],
    };
  }

  /** Subjects by which the account of trainers reaches that of hosts, and the inboxes that lead back. */
  get shared(): {
    /** Answered by one message each. */
    readonly requests: readonly string[];
    /** Answered by several messages. */
    readonly streamed: readonly string[];
    /** Received, without having been asked for. */
    readonly inboxes: string;
  } {
    return {
      requests: [
        `${this.#root}.log.*.trainer.>`,
        this.#subjects.allPulls(),
        `${this.#root}.shard.*.*.outcome`,
        `${this.#root}.shard.*.*.step`,
        this.#subjects.allLifecycle(),
        this.#subjects.allControl(),
      ],
      streamed: [`${this.#root}.shard.*.*.read`],
      inboxes: `${this.#inboxes()}.>`,
    };
  }

  /** What a host publishes besides calls of the API. */
  #hostWork(): string[] {
    return [
      `$KV.${this.#subjects.bucket()}.>`,
      `$KV.${this.#subjects.leaseBucket()}.>`,
      ...HOST_VERBS.map((verb) => `${this.#root}.log.*.host.${verb}`),
      `${this.#root}.snap.*.manifest`,
      `${this.#root}.snap.*.state.*`,
      `${this.#root}.snap.*.piece.*.*.*`,
      `${this.#root}.tape.*`,
      ...OWNER_VERBS.map((verb) => `${this.#root}.owner.*.*.${verb}`),
      this.#subjects.allPresences(),
    ];
  }

  #inboxes(): string {
    return `_INBOX_${this.#subjects.job}`;
  }

  #hostInboxes(): string {
    return `${this.#inboxes()}.=host`;
  }
}

/** Returns what a user may do who has the same role in several jobs. */
export function permissionsIn(
  jobs: readonly string[],
  roleOf: (job: JobPermissions) => Permissions,
): Permissions {
  const all = jobs.map((job) => roleOf(new JobPermissions(job)));
  return {
    publish: [...new Set(all.flatMap(({ publish }) => publish))],
    subscribe: [...new Set(all.flatMap(({ subscribe }) => subscribe))],
  };
}

/** Replaces the number of shard 0 in a subscription by a wildcard. */
function ofAnyShard(subscription: string): string {
  return subscription.replace(/\.0\./, ".*.");
}
