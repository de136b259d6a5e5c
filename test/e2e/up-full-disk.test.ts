// Proves that `pserver up` repairs a broker which a full disk has left unable to write, once there is space,
// without anybody's help, and that the values are exactly those that were acknowledged. And that a job on a
// disk that others have filled since opens and takes updates.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/index.ts";
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

test.skipIf(OBSTACLE !== "")(`continues after its disk was full${OBSTACLE}`, async () => {
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
    expect(up.errors()).toContain("space is free again");
    expect(up.errors()).toContain("the broker is back at");
  } finally {
    await client.close({ timeoutMs: 1 });
  }
});

test.skipIf(OBSTACLE !== "")(
  `opens a job again that has reserved more than is free${OBSTACLE}`,
  async () => {
    disk = new SmallDisk();
    const store = join(disk.path, "up");
    const serve = async (...flags: string[]): Promise<Client> => {
      up = start(["up", "--json", "--port", "0", "--store", store, ...flags]);
      const { url } = JSON.parse(await up.firstLine);
      return await connect({ url, job: "default", trainer: "a", timeoutMs: HANG_MS });
    };
    const first = await serve("--shards", "2");
    expect(await first.beginInit()).toBe(true);
    await first.initParam("w", Float32Array.of(1), { learningRate: 1 });
    await first.finishInit();
    await first.close();
    up?.child.kill("SIGTERM");
    expect(await up?.finished).toMatchObject({ code: 0 });

    // Two journals of 16 MiB at least are reserved, and three quarters of what is left are fewer.
    await disk.take(90 * 1024 * 1024);
    const again = await serve();
    await again.sendGrads({ w: Float32Array.of(-1) });
    expect((await again.pullFull("w")).data).toEqual(Float32Array.of(2));
    // And what is small can still be made.
    await again.createIfNotAlreadyCreated("v", Float32Array.of(3));
    await again.close();
  },
);
