// Proves that `pserver up` mends a broker which a full disk has left unable to write, once there is
// room: nobody has to do anything else, and the values are exactly what was acknowledged.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { type Running, start } from "../cli/spawn-command.ts";
import { HANG_MS } from "../support/limits.ts";
import { mountObstacle, SmallDisk } from "../support/small-disk.ts";
import { TracedPushes } from "./host/traced-pushes.ts";

/** Why there can be no small disk here; "" where there can. */
const OBSTACLE = mountObstacle();

let disk: SmallDisk | undefined;
let up: Running | undefined;

afterEach(async () => {
  up?.child.kill("SIGTERM");
  await up?.finished;
  disk?.remove();
  [up, disk] = [undefined, undefined];
});

test.skipIf(OBSTACLE !== "")(`goes on after its disk was full${OBSTACLE}`, async () => {
  disk = new SmallDisk();
  const small = ["--shards", "1", "--journal-limit", "32MiB"];
  up = start(["up", "--json", "--port", "0", "--store", join(disk.path, "up"), ...small]);
  const { url } = JSON.parse(await up.firstLine);
  const client = await connect({ url, job: "default", trainer: "a", timeoutMs: HANG_MS });
  try {
    const pushes = new TracedPushes(client);
    await pushes.begin();
    await pushes.pushAll(3);
    await disk.fillButAPage();
    await pushes.pushUntil(
      () => pushes.refusals.at(-1) === "JOURNAL_FAULT",
      async () => await disk?.fillButAPage(),
    );
    expect(await pushes.check()).toBe(pushes.sum);
    expect(up.errors()).not.toContain("starting it again");
    await disk.free();
    await pushes.pushAll(2);
    await pushes.check();
    expect(up.errors()).toContain("there is room again");
    expect(up.errors()).toContain("the broker is back at");
  } finally {
    await client.close({ timeoutMs: 1 });
  }
});
