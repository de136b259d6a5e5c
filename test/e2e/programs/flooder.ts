/**
 * A trainer that asks one thing as fast as it can, past its client, until its input ends. Its options are
 * the first argument, as JSON; each second, and at its end, it tells what it has sent and what came back.
 */
import { connect } from "@nats-io/transport-node";
import {
  decodeMessage,
  encodeMessage,
  errorFromWire,
  JobSubjects,
  retryAfterMs,
  type WireError,
} from "../../../src/protocol/index.ts";
import { HANG_MS } from "../../support/limits.ts";

/** Messages sent between two looks at whether the broker keeps up. */
const BATCH = 1_000;

/** Never more, whatever becomes of the test. */
const SENT_MAX = 20_000_000;

const { url, job, what } = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>;
const subjects = new JobSubjects(job ?? "");
const inboxPrefix = subjects.inbox("flood");
const connection = await connect({ servers: url ?? "", inboxPrefix });

const joined = await connection.request(
  subjects.lifecycle("flood", "join"),
  encodeMessage({ token: "flood" }),
  { timeout: HANG_MS },
);
const { session } = decodeMessage(joined.data).fields;

const SUBJECTS: Readonly<Record<string, string>> = {
  status: subjects.lifecycle("flood", "status"),
  create: subjects.lifecycle("flood", "create"),
  save: subjects.control("flood", "save"),
  outcome: subjects.outcome(0, "flood"),
};

function body(n: number): Uint8Array {
  if (what === "status") return encodeMessage({ limit: 256 });
  if (what === "save") return encodeMessage({ path: "flood.npz" });
  if (what === "outcome") {
    return encodeMessage({ session, numbers: [1, 2, 3], generation: 1, seq: 1 });
  }
  const parameter = { name: `flood-${n % 50}`, dtype: "float32", shape: [1], config: {} };
  return encodeMessage({ session, parameter });
}

const told = { sent: 0, answered: 0, busy: 0, hinted: 0, others: {} as Record<string, number> };
connection.subscribe(`${inboxPrefix}.reply`, {
  callback: (_error, message) => {
    told.answered++;
    // Nobody listens at the moment.
    if (message.data.length === 0) return;
    const { error } = decodeMessage(message.data).fields;
    if (error === undefined) return;
    const refusal = errorFromWire(error as WireError);
    if (refusal.code === "BUSY") told.busy++;
    else told.others[refusal.code] = (told.others[refusal.code] ?? 0) + 1;
    if (retryAfterMs(refusal) > 0) told.hinted++;
  },
});
const tell = (): void => void process.stdout.write(`${JSON.stringify(told)}\n`);

const bodies = Array.from({ length: 50 }, (_, n) => body(n));
let isEnded = false;
process.stdin.resume().once("end", () => {
  isEnded = true;
});
const timer = setInterval(tell, 1_000);
while (!isEnded && told.sent < SENT_MAX) {
  for (let i = 0; i < BATCH; i++) {
    const bytes = bodies[i % bodies.length] as Uint8Array;
    connection.publish(SUBJECTS[what ?? ""] ?? "", bytes, { reply: `${inboxPrefix}.reply` });
  }
  told.sent += BATCH;
  await connection.flush();
}
clearInterval(timer);
tell();
await connection.close();
