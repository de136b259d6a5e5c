import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type Check, fail, ok, skip } from "./check.ts";

/** A subject that a role must be able to use. */
interface Need {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
  /** The group that shares a subscription. */
  readonly queue?: string;
}

/** What a user may be, by its permissions: a host has one user for two of these, or two users. */
export const ROLES = ["trainer", "observer", "store", "answers"] as const;

/** One of the roles. */
export type Role = (typeof ROLES)[number];

/** What a user may do. */
export interface Permissions {
  readonly roles: ReadonlySet<Role>;
  /** What the broker refuses of each role. */
  readonly refused: Readonly<Record<Role, readonly string[]>>;
}

/** No job has a shard or block of this number: nobody listens there and no journal captures it. */
const NOWHERE = 999_999_999;

/** The group in which hosts share requests. */
const HOSTS_QUEUE = "hosts";

const ADVICE = "see the users and permissions in docs/operations.md";

/** What each role is for, in the words of the report. */
const PURPOSES: Readonly<Record<Role, string>> = {
  trainer: "act as a trainer",
  observer: "look on, as status and ls do",
  store: "store as a host",
  answers: "listen and answer as a host",
};

/**
 * Tries what the broker's permissions let this user do, in each role. Only subjects are tried where
 * nothing is stored and nobody disturbed.
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

/**
 * What the permissions are good for. A user with one role is well: a host may have two users, and an
 * observer is no trainer. One that has none lacks what the report names.
 */
export function checkPermissions({ roles, refused }: Permissions, trainer: string): Check[] {
  const missing = (role: Role): string => `the broker refuses ${refused[role].join(", ")}`;
  const judge = (name: string, role: Role, as = ""): Check => {
    const what = `${PURPOSES[role]}${as}`;
    return roles.has(role) ? ok(name, `may ${what}`) : skip(name, `this user may not ${what}`);
  };
  const as = ` under the id ${trainer}`;
  const mayNothing = roles.size === 0;
  return [
    mayNothing
      ? fail("trainer permissions", missing("trainer"), ADVICE)
      : judge("trainer permissions", roles.has("trainer") ? "trainer" : pickLooker(roles), as),
    judge("host permissions (store)", "store"),
    judge("host permissions (answers)", "answers"),
  ];
}

/** An observer is told what it may; everybody else, that it may not be a trainer. */
function pickLooker(roles: ReadonlySet<Role>): Role {
  return roles.has("observer") ? "observer" : "trainer";
}

function roleNeeds(subjects: JobSubjects, trainer: string): Readonly<Record<Role, Need[]>> {
  const { outcome, step, owner } = subjects.shardRequests(NOWHERE);
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
      publish(subjects.clock(NOWHERE, trainer)),
      publish(subjects.outcome(NOWHERE, trainer)),
      publish(subjects.step(NOWHERE, trainer)),
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
      listen(owner),
      publish(`${subjects.inbox("doctor")}.doctor`),
    ],
  };
}

/** Uses each subject once; answers the names of those that the broker refuses. */
async function tryOut(
  connection: NatsConnection,
  needs: readonly Need[],
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  // Ends with the connection, which the caller closes.
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
  // The broker handles the lines of a connection in order, so its refusals come before this
  // answer; the loop over them has caught up by the second.
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
