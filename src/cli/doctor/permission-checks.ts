import { type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type Check, fail, ok, warn } from "./check.ts";

/** A subject that a role must be able to use. */
interface Need {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
}

/** No job has a shard or block of this number: nobody listens there and no journal captures it. */
const NOWHERE = 999_999_999;

/** One user per host needs all of it; of two, one stores and one listens and answers. */
const HOST_ADVICE =
  "right for a trainer's user and for either of a host's two users, not for a host's only one";

const ADVICE = "see the users and permissions in docs/operations.md";

/**
 * What the broker's permissions let this user do as trainer and as host. Only subjects are tried
 * where nothing is stored and nobody disturbed.
 */
export async function checkPermissions(
  connection: NatsConnection,
  subjects: JobSubjects,
  trainer: string,
): Promise<Check[]> {
  const asTrainer = trainerNeeds(subjects, trainer);
  const asHost = hostNeeds(subjects, trainer);
  const refused = await tryOut(connection, [...asTrainer, ...asHost]);
  return [
    judge("trainer permissions", `may act as trainer ${trainer}`, asTrainer, refused, fail),
    judge(
      "host permissions",
      "may store, listen and answer as a host",
      asHost,
      refused,
      (name, message) => warn(name, message, `${HOST_ADVICE}: ${ADVICE}`),
    ),
  ];
}

function judge(
  name: string,
  allowed: string,
  needs: readonly Need[],
  refused: ReadonlySet<string>,
  complain: typeof fail,
): Check {
  const missing = needs.map(nameOf).filter((need) => refused.has(need));
  if (missing.length === 0) return ok(name, allowed);
  return complain(name, `the broker refuses ${missing.join(", ")}`, ADVICE);
}

function trainerNeeds(subjects: JobSubjects, trainer: string): Need[] {
  return [
    { operation: "subscription", subject: `${subjects.inbox(trainer)}.doctor` },
    { operation: "publish", subject: subjects.log(NOWHERE, trainer, "push", "doctor", 0) },
    { operation: "publish", subject: subjects.clock(NOWHERE, trainer) },
    { operation: "publish", subject: subjects.pull("doctor", NOWHERE, trainer) },
    { operation: "publish", subject: subjects.outcome(NOWHERE, trainer) },
    { operation: "publish", subject: subjects.step(NOWHERE, trainer) },
  ];
}

function hostNeeds(subjects: JobSubjects, trainer: string): Need[] {
  const { outcome, step, owner } = subjects.shardRequests(NOWHERE);
  return [
    { operation: "subscription", subject: subjects.lifecycle(trainer, "status") },
    { operation: "subscription", subject: subjects.control(trainer, "hosts") },
    { operation: "subscription", subject: subjects.block("doctor", NOWHERE) },
    { operation: "subscription", subject: outcome },
    { operation: "subscription", subject: step },
    { operation: "subscription", subject: owner },
    { operation: "publish", subject: `${subjects.inbox("doctor")}.doctor` },
    { operation: "publish", subject: subjects.hostLog(NOWHERE, "floor") },
  ];
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

function nameOf({ operation, subject }: Need): string {
  return `${operation} ${subject}`;
}
