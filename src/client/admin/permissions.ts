import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import type { JobSubjects } from "../../protocol/subjects.ts";

/** A subject that a role must be able to use. */
interface Need {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
  /** The group that shares a subscription. */
  readonly queue?: string;
}

/**
 * What a user may be, by its permissions. A host needs `store` and `answers`, of one user or of two.
 */
export const ROLES = ["trainer", "observer", "store", "answers"] as const;

/** One of the roles. */
export type Role = (typeof ROLES)[number];

/** What a user may do. */
export interface Permissions {
  readonly roles: ReadonlySet<Role>;
  /** What the broker refuses of each role. */
  readonly refused: Readonly<Record<Role, readonly string[]>>;
}

/** No job has a shard or block of this number: nobody listens there and no journal stores it. */
const NOWHERE = 999_999_999;

/** The queue group in which hosts share requests. */
const HOSTS_QUEUE = "hosts";

/**
 * Tries what the broker's permissions let this user do, in each role. Tries only subjects that no stream
 * stores and nobody listens to.
 */
export async function findPermissions(
  connection: NatsConnection,
  subjects: JobSubjects,
  trainer: string,
): Promise<Permissions> {
  const needs = roleNeeds(subjects, trainer);
  const all = await tryOut(connection, Object.values(needs).flat());
  const refusedOf = (role: Role): string[] =>
    [...new Set(needs[role].map(nameOf))].filter((name) => all.has(name));
  const refused = {
    trainer: refusedOf("trainer"),
    observer: refusedOf("observer"),
    store: refusedOf("store"),
    answers: refusedOf("answers"),
  };
  return { roles: new Set(ROLES.filter((role) => refused[role].length === 0)), refused };
}

function roleNeeds(subjects: JobSubjects, trainer: string): Readonly<Record<Role, Need[]>> {
  const { outcome, step, read, owner } = subjects.shardRequests(NOWHERE);
  const publish = (subject: string): Need => ({ operation: "publish", subject });
  const listen = (subject: string): Need => ({ operation: "subscription", subject });
  const share = (subject: string): Need => ({ ...listen(subject), queue: HOSTS_QUEUE });
  const observer = [
    listen(`${subjects.inbox(trainer)}.doctor`),
    publish(subjects.pull("doctor", NOWHERE, trainer)),
  ];
  return {
    observer,
    trainer: [
      ...observer,
      publish(subjects.log(NOWHERE, trainer, "push", "doctor", 0)),
      publish(subjects.batch(NOWHERE, trainer)),
      publish(subjects.clock(NOWHERE, trainer)),
      publish(subjects.outcome(NOWHERE, trainer)),
      publish(subjects.step(NOWHERE, trainer)),
      publish(subjects.read(NOWHERE, trainer)),
    ],
    store: [
      listen(`${subjects.hostInbox("doctor")}.doctor`),
      publish(subjects.hostLog(NOWHERE, "floor")),
      publish(subjects.owner(NOWHERE, "doctor", "check")),
      publish("$JS.API.INFO"),
    ],
    answers: [
      share(subjects.lifecycle(trainer, "status")),
      share(subjects.control(trainer, "hosts")),
      listen(subjects.block("doctor", NOWHERE)),
      listen(outcome),
      listen(step),
      listen(read),
      listen(owner),
      publish(`${subjects.inbox("doctor")}.doctor`),
    ],
  };
}

/** Uses each subject once; returns the names of those that the broker refuses. */
async function tryOut(
  connection: NatsConnection,
  needs: readonly Need[],
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  // Runs until the caller closes the connection.
  void watchRefusals(connection, refused);
  const subscriptions = needs
    .filter(({ operation }) => operation === "subscription")
    .map((need) =>
      connection.subscribe(need.subject, {
        ...(need.queue === undefined ? {} : { queue: need.queue }),
        callback: (error) => {
          if (error instanceof PermissionViolationError) refused.add(nameOf(need));
        },
      }),
    );
  for (const { operation, subject } of needs) {
    if (operation === "publish") connection.publish(subject);
  }
  // The broker handles a connection's lines in order, so its refusals come before the answer to this
  // flush; by the second one, the loop over them has seen all.
  await connection.flush();
  for (const subscription of subscriptions) subscription.unsubscribe();
  await connection.flush();
  return refused;
}

async function watchRefusals(connection: NatsConnection, refused: Set<string>): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === "error" && status.error instanceof PermissionViolationError) {
      refused.add(nameOf(status.error));
    }
  }
}

function nameOf({ operation, subject }: Pick<Need, "operation" | "subject">): string {
  return `${operation} ${subject}`;
}
