/**
 * Removes a job for good: its streams and buckets, with everything in them. Stop its hosts first.
 * The user must be allowed to list and delete streams, as without users everybody is.
 *
 *     node build/programs/examples/nats/remove-job.js nats://127.0.0.1:4222 JOB
 */
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { JobSubjects } from "../../src/protocol/index.ts";

const [url = "", job = ""] = process.argv.slice(2);
const subjects = new JobSubjects(job);
const whole = new Set([
  subjects.snapshotStream(),
  subjects.roomStream(),
  `KV_${subjects.bucket()}`,
  `KV_${subjects.leaseBucket()}`,
]);
const journal = new RegExp(`^${subjects.bucket()}_\\d+(_\\d+)?$`);
const connection = await connect({ servers: url });
try {
  const { streams } = await jetstreamManager(connection);
  const names: string[] = [];
  for await (const { config } of streams.list()) names.push(config.name);
  for (const name of names.filter((found) => whole.has(found) || journal.test(found))) {
    await streams.delete(name);
    console.log(`removed ${name}`);
  }
} finally {
  await connection.close();
}
