// Proves what each user of `pserver auth init` may do, on a real broker with that configuration and without hosts: every
// subject of the protocol, every call of JetStream's API and what lies beside them is tried as every user, and exactly
// what the table here allows is not refused. The table is written by hand: it does not ask the code that makes the
// configuration. Whoever has no key, or does not speak TLS, gets in nowhere.
import { once } from "node:events";
import { createConnection } from "node:net";
import {
  connect,
  type NatsConnection,
  nkeyAuthenticator,
  nkeys,
  PermissionViolationError,
} from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CONTROL_VERBS,
  HOST_VERBS,
  JobSubjects,
  LIFECYCLE_VERBS,
  OWNER_VERBS,
} from "../../src/protocol/index.ts";
import { openConnection } from "../../src/transport/connection.ts";
import { TestAuth } from "../support/auth.ts";
import { startTestBroker, type TestBroker } from "../support/broker.ts";
import { HANG_MS } from "../support/limits.ts";

const JOB = "mnist";
const TRAINERS = ["trainer-1", "gpu.3"];
const USERS = ["host", "answers", "admin", "observer", ...TRAINERS];
const subjects = new JobSubjects(JOB);
const other = new JobSubjects("mnist2");

let auth: TestAuth;
let broker: TestBroker;

beforeAll(async () => {
  auth = await TestAuth.make(JOB, TRAINERS);
  broker = await startTestBroker({ authFile: auth.directory.configFile });
});

afterAll(async () => {
  await broker?.remove();
  await auth?.remove();
});

/** What is tried, and which users may do it. */
type Row = readonly [subject: string, users: readonly string[]];

const rows = (users: readonly string[], list: readonly string[]): Row[] =>
  list.map((subject) => [subject, users]);

/** Subjects under the id of a trainer: `acting` change the job or a session, `looking` do not. */
function ownSubjects(id: string): { acting: string[]; looking: string[] } {
  const looking = [
    subjects.pull("w", 0, id),
    subjects.lifecycle(id, "status"),
    subjects.control(id, "hosts"),
    subjects.control(id, "versions"),
  ];
  const all = [
    subjects.log(0, id, "init", "w", 0),
    subjects.log(0, id, "push", "w", 0),
    subjects.log(7, id, "set", "w.b", 12),
    subjects.clock(0, id),
    subjects.batch(0, id),
    subjects.note(0, id),
    subjects.outcome(0, id),
    subjects.step(0, id),
    subjects.read(0, id),
    ...LIFECYCLE_VERBS.map((verb) => subjects.lifecycle(id, verb)),
    ...CONTROL_VERBS.map((verb) => subjects.control(id, verb)),
  ];
  return { looking, acting: all.filter((subject) => !looking.includes(subject)) };
}

/** Calls that a host makes, with a stream of the job in them. */
const HOST_CALLS = [
  "INFO",
  "STREAM.NAMES",
  "STREAM.LIST",
  "STREAM.INFO.PS_mnist_0",
  "STREAM.CREATE.PS_mnist_0",
  "STREAM.UPDATE.PS_mnist_0",
  "STREAM.PURGE.PS_mnist_0",
  "STREAM.DELETE.PS_mnist_0",
  "STREAM.MSG.GET.PS_mnist_0",
  "STREAM.MSG.DELETE.PS_mnist_0",
  "DIRECT.GET.PS_mnist_0",
  "CONSUMER.CREATE.PS_mnist_0.c",
  "CONSUMER.CREATE.PS_mnist_0.c.ps.mnist.log.0.>",
  "CONSUMER.DELETE.PS_mnist_0.c",
  "CONSUMER.INFO.PS_mnist_0.c",
  "CONSUMER.MSG.NEXT.PS_mnist_0.c",
];

/** The other calls of JetStream's API. */
const OTHER_CALLS = [
  "STREAM.SNAPSHOT.PS_mnist_0",
  "STREAM.RESTORE.PS_mnist_0",
  "STREAM.PEER.REMOVE.PS_mnist_0",
  "STREAM.LEADER.STEPDOWN.PS_mnist_0",
  "STREAM.TEMPLATE.CREATE.t",
  "STREAM.TEMPLATE.NAMES",
  "STREAM.TEMPLATE.INFO.t",
  "STREAM.TEMPLATE.DELETE.t",
  "CONSUMER.CREATE.PS_mnist_0",
  "CONSUMER.DURABLE.CREATE.PS_mnist_0.c",
  "CONSUMER.NAMES.PS_mnist_0",
  "CONSUMER.LIST.PS_mnist_0",
  "CONSUMER.PAUSE.PS_mnist_0.c",
  "CONSUMER.UNPIN.PS_mnist_0.c",
  "CONSUMER.LEADER.STEPDOWN.PS_mnist_0.c",
  "DIRECT.GET.PS_mnist_0.ps.mnist.log.0.host.rules",
  "META.LEADER.STEPDOWN",
  "SERVER.REMOVE",
  "ACCOUNT.PURGE.HOSTS",
  "ACCOUNT.STREAM.MOVE.HOSTS.PS_mnist_0",
  "ACCOUNT.STREAM.CANCEL_MOVE.HOSTS.PS_mnist_0",
];

const PUBLISH: readonly Row[] = [
  ...[...TRAINERS, "admin"].flatMap((id) => {
    const { acting, looking } = ownSubjects(id);
    return rows([id], [...acting, ...looking]);
  }),
  ...rows([], ownSubjects("observer").acting),
  ...rows(["host", "admin", "observer"], ownSubjects("observer").looking),
  ...rows([], Object.values(ownSubjects("stranger")).flat()),
  ...rows(
    ["host", "admin"],
    [
      ...HOST_VERBS.map((verb) => subjects.hostLog(0, verb)),
      ...OWNER_VERBS.map((verb) => subjects.owner(0, "h1", verb)),
      subjects.presence("run-1"),
      subjects.manifest(0),
      subjects.snapshotState(0, 3),
      subjects.piece(0, "w", 0, 1),
      subjects.tape(0),
      `$KV.${subjects.bucket()}.settings`,
      `$KV.${subjects.leaseBucket()}.shard.0`,
      ...HOST_CALLS.map((call) => `$JS.API.${call}`),
    ],
  ),
  ...rows(
    ["admin"],
    OTHER_CALLS.map((call) => `$JS.API.${call}`),
  ),
  ...rows(
    ["answers"],
    [
      ...TRAINERS.map((id) => `${subjects.inbox(id)}.x.y`),
      `${subjects.inbox("observer")}.x`,
      `${subjects.inbox("admin")}.x`,
      `${subjects.hostInbox("h1")}.x`,
      "_R_.guess",
    ],
  ),
  ...rows(
    [],
    [
      "_GR_.guess",
      "_INBOX.x",
      `${other.inbox("trainer-1")}.x`,
      "ps.mnist",
      "ps.mnist.log.0.trainer.trainer-1.other",
      "ps.mnist.lifecycle.trainer-1.other",
      "ps.mnist.control.trainer-1.other",
      "ps.mnist.log.0.host.other",
      "ps.mnist.room",
      "ps.mnist.left.0.1",
      other.log(0, "trainer-1", "push", "w", 0),
      other.hostLog(0, "rules"),
      other.lifecycle("trainer-1", "join"),
      other.manifest(0),
      `$KV.${other.bucket()}.settings`,
      "$KV.other.key",
      "$O.other.C.x",
      "$JS.ACK.PS_mnist_0.c.1.1.1.1.0",
      "$JS.FC.PS_mnist_0.c.x",
      "$JS.EVENT.ADVISORY.API",
      "$JSC.R.x",
      "$NRG.V.x",
      "$SYS.REQ.SERVER.PING",
      "$SYS.REQ.ACCOUNT.PING.CONNZ",
      "$SYS.REQ.USER.INFO",
      "$SRV.PING",
      "foo",
    ],
  ),
];

const SUBSCRIBE: readonly Row[] = [
  ...["observer", "admin", ...TRAINERS].flatMap((id) => {
    const users = id === "observer" ? ["host", "admin", id] : [id];
    return rows(users, [`${subjects.inbox(id)}.>`, `${subjects.inbox(id)}.random.*`]);
  }),
  ...rows(["host", "admin"], [`${subjects.hostInbox("h1")}.>`, "_INBOX_mnist.=host.>"]),
  ...rows(
    ["answers"],
    [
      `${subjects.allLifecycle()} hosts`,
      `${subjects.allControl()} hosts`,
      `${subjects.presence("run-1")} hosts`,
      subjects.allStops(),
      subjects.allPulls(),
      subjects.block("w", 0),
      ...Object.values(subjects.shardRequests(3)),
    ],
  ),
  ...rows(
    [],
    [
      subjects.allLifecycle(),
      subjects.allControl(),
      subjects.presence("run-1"),
      `${subjects.allLifecycle()} others`,
      subjects.lifecycle("trainer-1", "join"),
      subjects.shardLog(0),
      subjects.allSnapshots(),
      subjects.allTapes(),
      `${subjects.inbox("stranger")}.>`,
      "_INBOX_mnist.>",
      "_INBOX_mnist.*.>",
      "_INBOX.>",
      "_R_.>",
      "ps.>",
      "ps.mnist.>",
      `ps.${other.job}.>`,
      "$KV.>",
      "$JS.>",
      "$JS.API.>",
      "$JS.EVENT.>",
      "$SYS.>",
      "$SRV.>",
      "*",
      ">",
    ],
  ),
];

/** A connection that does what it is told, without the client's good manners. */
async function open(user: string): Promise<NatsConnection> {
  const role = { name: user, inboxPrefix: `_INBOX_${JOB}.${user}` };
  return await openConnection(auth.as(user, [broker.url]), role);
}

const REFUSAL = /Violation for (Publish|Subscription) to "([^"]*)"(?: using queue "([^"]*)")?/;

/** Tries everything as a user; returns what the broker did not refuse. */
async function allowed(user: string): Promise<{ publish: string[]; subscribe: string[] }> {
  const connection = await open(user);
  const refused = new Set<string>();
  void (async () => {
    for await (const status of connection.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const [, what = "", subject = "", queue] = REFUSAL.exec(status.error.message) ?? [];
      refused.add(`${what} ${subject}${queue === undefined ? "" : ` ${queue}`}`);
    }
  })();
  try {
    for (const [subject] of SUBSCRIBE) {
      const [to = "", queue] = subject.split(" ");
      const options = { callback: () => undefined, ...(queue === undefined ? {} : { queue }) };
      connection.subscribe(to, options);
    }
    for (const [subject] of PUBLISH) connection.publish(subject);
    // The broker handles a connection's lines in order: all refusals come before the answer to the first flush, and after
    // the second one the loop above has seen them.
    await connection.flush();
    await connection.flush();
    const keep = (what: string, list: readonly Row[]): string[] =>
      list.map(([subject]) => subject).filter((subject) => !refused.has(`${what} ${subject}`));
    return { publish: keep("Publish", PUBLISH), subscribe: keep("Subscription", SUBSCRIBE) };
  } finally {
    await connection.close();
  }
}

test("the table names each subject once", () => {
  for (const list of [PUBLISH, SUBSCRIBE]) {
    const names = list.map(([subject]) => subject);
    expect(new Set(names).size).toBe(names.length);
  }
});

test.each(USERS)("%s may do what it needs, and nothing else", async (user) => {
  const wanted = (list: readonly Row[]): string[] =>
    list.filter(([, users]) => users.includes(user)).map(([subject]) => subject);
  expect(await allowed(user)).toEqual({ publish: wanted(PUBLISH), subscribe: wanted(SUBSCRIBE) });
});

describe("nobody gets in", () => {
  const options = () => {
    const { port } = new URL(broker.url);
    const tls = { caFile: auth.directory.authorityFile };
    return { servers: `127.0.0.1:${port}`, tls, timeout: HANG_MS, reconnect: false };
  };

  test("without a key, or with one that the broker does not know", async () => {
    const seed = nkeys.createUser().getSeed();
    const strangers = [
      {},
      { user: "host", pass: "host" },
      { token: "host" },
      { authenticator: nkeyAuthenticator(seed) },
    ];
    for (const stranger of strangers) {
      await expect(connect({ ...options(), ...stranger })).rejects.toThrow(/Authorization/);
    }
  });

  test("without TLS", async () => {
    const { port } = new URL(broker.url);
    const socket = createConnection({ host: "127.0.0.1", port: Number(port) });
    const answers: string[] = [];
    socket.on("data", (chunk) => answers.push(String(chunk)));
    await once(socket, "data");
    socket.write('CONNECT {"verbose":true}\r\nPING\r\n');
    await once(socket, "close");
    const text = answers.join("");
    expect(text).toContain('"tls_required":true');
    expect(text).not.toMatch(/PONG|\+OK/);
  });
});
