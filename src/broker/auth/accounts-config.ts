import { JobPermissions, type Permissions } from "../../protocol/permissions.ts";

/** A user of the broker, known by the public key of an nkey. */
interface User {
  /** What the user is for, as a comment. */
  readonly name: string;
  readonly publicKey: string;
  readonly permissions: Permissions;
}

/** The users of two accounts, and the jobs that these are for. */
export interface JobUsers {
  readonly jobs: readonly string[];
  readonly hosts: readonly User[];
  readonly trainers: readonly User[];
}

/**
 * Returns the accounts of jobs as a configuration of nats-server. Who is not named gets in nowhere, and whoever gets in
 * may do only what is listed.
 *
 * Trainers have an account of their own. The broker acknowledges every journal record at the reply subject that its
 * sender chose, and no permission restricts that subject within the sender's account. So that account must have nothing
 * to write to: streams, buckets and hosts are in the other account, and only the shared subjects lead there.
 */
export function accountsConfig({ jobs, hosts, trainers }: JobUsers): string {
  const shared = jobs.map((job) => new JobPermissions(job).shared);
  const [requests, streamed] = [
    shared.flatMap((of) => of.requests),
    shared.flatMap((of) => of.streamed),
  ];
  const inboxes = shared.map((of) => of.inboxes);
  const to = "accounts: [TRAINERS]";
  const from = "account: HOSTS";
  const lines = [
    "accounts {",
    "  HOSTS {",
    "    jetstream: enabled",
    ...DENY_ALL,
    ...usersBlock(hosts),
    "    exports: [",
    ...requests.map((subject) => `      { service: "${subject}", ${to} }`),
    ...streamed.map((subject) => `      { service: "${subject}", response_type: Stream, ${to} }`),
    ...inboxes.map((subject) => `      { stream: "${subject}", ${to} }`),
    "    ]",
    "  }",
    "  TRAINERS {",
    ...DENY_ALL,
    "    imports: [",
    ...[...requests, ...streamed].map(
      (subject) => `      { service: { ${from}, subject: "${subject}" } }`,
    ),
    ...inboxes.map((subject) => `      { stream: { ${from}, subject: "${subject}" } }`),
    "    ]",
    ...usersBlock(trainers),
    "  }",
    "}",
  ];
  return lines.join("\n");
}

/** For users without permissions of their own, of which there are none. */
const DENY_ALL = [
  '    default_permissions { publish { deny: ">" }, subscribe { deny: ">" } }',
] as const;

function usersBlock(users: readonly User[]): string[] {
  const entries = users.flatMap(({ name, publicKey, permissions }) => [
    `      # ${name}`,
    `      { nkey: ${publicKey}, permissions: {`,
    ...subjectList("publish", permissions.publish),
    ...subjectList("subscribe", permissions.subscribe),
    "      } }",
  ]);
  return ["    users: [", ...entries, "    ]"];
}

function subjectList(operation: string, subjects: readonly string[]): string[] {
  return [
    `        ${operation}: [`,
    ...subjects.map((subject) => `          "${subject}"`),
    "        ]",
  ];
}
