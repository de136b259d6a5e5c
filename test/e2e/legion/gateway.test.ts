// Proves that a client of Legion's works unchanged: a Python client that knows its frames alone trains
// through a real gateway, alone and with others, and what it has then is what numpy says. And that a client
// that asks for something impossible, sends nothing, or leaves does no harm to others.

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectSocket, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { frameHeader, jsonFrame } from "../../../src/cli/legion-gateway/frames.ts";
import type { Client } from "../../../src/client/index.ts";
import { type Running, start } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { runPython } from "../../support/run-python.ts";

let job: TestJob;
let trainer: Client;
let models: string;

beforeAll(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-legion-"));
  job = await TestJob.start({ modelDirectory: models });
  await job.host();
  trainer = await job.trainer("t");
});
afterAll(async () => {
  await job?.remove();
  await rm(models, { recursive: true, force: true });
});

interface Gateway {
  readonly running: Running;
  readonly port: number;
  /** Runs a script in which `Client` is the old client. */
  python(script: string, ...args: readonly string[]): Promise<string>;
  connect(): Promise<Socket>;
  /** Waits until the log has a line that matches. */
  logged(expected: RegExp): Promise<void>;
}

async function startGateway(...flags: readonly string[]): Promise<Gateway> {
  const args = ["legion-gateway", "--url", job.broker.url, "--job", job.job, ...flags];
  const running = start([...args]);
  const port = Number(/:(\d+);/.exec(await running.firstLine)?.[1]);
  const environment = {
    legion_server_ip: "127.0.0.1",
    legion_server_port: String(port),
    PYTHONPATH: import.meta.dirname,
  };
  return {
    running,
    port,
    python: (script, ...scriptArgs) => runPython(`${PREAMBLE}${script}`, scriptArgs, environment),
    connect: async () => {
      const socket = connectSocket({ port, host: "127.0.0.1" });
      onTestFinished(() => {
        socket.destroy();
      });
      socket.on("error", () => undefined);
      await once(socket, "connect");
      return socket;
    },
    logged: async (expected) => {
      const wait = { timeout: HANG_MS, interval: 20 };
      await vi.waitFor(() => expect(running.errors()).toMatch(expected), wait);
    },
  };
}

const PREAMBLE = `
import json, sys
import numpy as np
from old_client import Client
`;

/** All that comes until the other end closes. */
async function rest(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("the script of Legion's users", async () => {
  const gateway = await startGateway();
  await gateway.python(`
cube = -np.ones((10, 20, 30), "float32")
cube[2:5, 2:5, 2:5] = 0
client = Client()
mine = client.create_if_not_already_created("cube", cube)
assert (mine == cube).all()
assert (Client().create_if_not_already_created("cube", cube * 7) == cube).all()
axes = [[0], [1, 4], [1, 6]]
new = np.arange(4, dtype="float32").reshape(1, 2, 2)
client.push_as_part("cube", new, axes, 0.5, 0.5)
cube[np.ix_(*axes)] = 0.5 * cube[np.ix_(*axes)] + 0.5 * new
assert (client.pull_full("cube") == cube).all()
assert (client.pull_part("cube", [[5, 0], [4, 4, -1], [6]]) == cube[np.ix_([5, 0], [4, 4, -1], [6])]).all()
client.push_full("cube", np.full(cube.shape, 3.0), 0.25, 2)
cube = np.float32(0.25) * cube + np.float32(6)
assert (client.pull_full("cube") == cube).all()
assert client.pull_part("cube", [[], [1], [2]]).shape == (0, 1, 1)
`);
  const { data } = await trainer.pullFull("cube");
  expect(data.length).toBe(6_000);
});

test("single elements, in one update where they make a product, against numpy", async () => {
  const gateway = await startGateway();
  await gateway.python(`
rng = np.random.default_rng(11)
client = Client()
for name, shape in [("line", (1000,)), ("plane", (60, 40)), ("block", (5, 6, 7)), ("large", (300, 5000))]:
    value = client.create_if_not_already_created(name, rng.normal(size=shape).astype("float32"))
    for count in [0, 1, 50]:
        points = np.stack([rng.integers(-size, size, count) for size in shape], axis=1)
        new = rng.normal(size=count).astype("float32")
        old = value.copy()
        for at, x in zip(points, new):
            value[tuple(at)] = np.float32(0.5) * old[tuple(at)] + np.float32(0.25) * x
        client.push_from_indices(name, new, points, 0.5, 0.25)
        pulled = client.pull_from_indices(name, points)
        assert pulled.shape == (count,)
        np.testing.assert_array_equal(pulled, value[tuple(points.T)])
    np.testing.assert_allclose(client.pull_full(name), value, rtol=1e-6)
`);
});

test("many that create one name at once have one value, also those who come late", async () => {
  const gateway = await startGateway();
  const create = (seed: number): Promise<string> =>
    gateway.python(
      `
from concurrent.futures import ThreadPoolExecutor
seed = int(sys.argv[1])
def create(i):
    client = Client()
    return [client.create_if_not_already_created(f"race/{j}", np.full((3, 2), 100.0 * seed + i)).tolist() for j in range(5)]
with ThreadPoolExecutor(8) as pool: print(json.dumps(list(pool.map(create, range(8)))))
`,
      String(seed),
    );
  const found = (await Promise.all([create(1), create(2)])).flatMap((text) => JSON.parse(text));
  const late = JSON.parse(await create(3));
  expect(found).toHaveLength(16);
  for (const values of [...found, ...late]) expect(values).toEqual(found[0]);
  const { data } = await trainer.pullFull("race/0");
  expect([...data]).toEqual(found[0][0].flat());
});

test("a client that dies while it creates a parameter is replaced by one that waits", async () => {
  const gateway = await startGateway();
  const dying = await gateway.connect();
  dying.write(jsonFrame({ query_id: 27, name: "orphan" }));
  await once(dying, "data");
  const waiting = gateway.python(
    `assert Client().create_if_not_already_created("orphan", np.ones(3))[0] == 1`,
  );
  dying.write(jsonFrame({ shape: [4], dtype: "float32" }).subarray(0, 11));
  dying.resetAndDestroy();
  await waiting;
  expect([...(await trainer.pullFull("orphan")).data]).toEqual([1, 1, 1]);
});

test("workers that come late and are killed leave the sum of what they have pushed", async () => {
  const gateway = await startGateway();
  await gateway.python(`Client().create_if_not_already_created("sum", np.zeros(4))`);
  /** The signal that has ended a worker, or what it has failed with. */
  const worker = (pushes: number): Promise<unknown> =>
    gateway
      .python(
        `
import os, signal
client = Client()
for i in range(int(sys.argv[1])): client.push_full("sum", np.ones(4), 1.0, 1.0)
client.pull_full("sum")
client.send_json({"query_id": 22, "name": "sum", "alpha": 1.0, "beta": 1.0})
client.socket.sendall(b"half a frame")
os.kill(os.getpid(), signal.SIGKILL)
`,
        String(pushes),
      )
      .catch((error: { signal?: string }) => error.signal ?? error);
  expect(await Promise.all([20, 30].map(worker))).toEqual(["SIGKILL", "SIGKILL"]);
  expect(await worker(7)).toBe("SIGKILL");
  expect([...(await trainer.pullFull("sum")).data]).toEqual([57, 57, 57, 57]);
});

test("saves as HDF5 below the model directory, wherever the old path led", async () => {
  const gateway = await startGateway();
  await gateway.python(`
client = Client()
client.create_if_not_already_created("saved/w", np.arange(6.0).reshape(2, 3))
client.server_save_to_hdf5("/scratch/../../tmp/run 1/model")
client.pull_full("saved/w")
`);
  await gateway.logged(/saved \d+ bytes .*: tmp\/run 1\/model\.h5/);
  const script = `
import h5py
with h5py.File(sys.argv[1]) as file: print(json.dumps(file["saved/w"][()].tolist()))`;
  const text = await gateway.python(script, join(models, "tmp/run 1/model.h5"));
  expect(JSON.parse(text)).toEqual([
    [0, 1, 2],
    [3, 4, 5],
  ]);
});

const PULL = (name: string) => jsonFrame({ query_id: 20, name });
const BAD: readonly (readonly [what: string, code: string, frames: readonly Uint8Array[]])[] = [
  ["a frame of another kind", "BAD_MESSAGE", [frameHeader(12, 4)]],
  ["a negative length", "BAD_LENGTH", [frameHeader(10, -5)]],
  ["a length of 2 GiB", "BAD_LENGTH", [frameHeader(10, 2 ** 31 - 1)]],
  ["no JSON", "BAD_MESSAGE", [frameHeader(10, 2), Buffer.from("{!")]],
  ["no object", "BAD_MESSAGE", [jsonFrame([1])]],
  ["an unknown query", "BAD_MESSAGE", [jsonFrame({ query_id: 26, name: "v" })]],
  ["an unknown name", "UNKNOWN_PARAMETER", [PULL("nobody's")]],
  ["a wrong axis", "BAD_INDEX", [jsonFrame({ query_id: 21, name: "v", axis_numbers: [[9]] })]],
  [
    "an axis too many",
    "BAD_INDEX",
    [jsonFrame({ query_id: 21, name: "v", axis_numbers: [[0], [0]] })],
  ],
  ["another shape", "BAD_SHAPE", [...push([4, 1], "float32", 16)]],
  ["complex numbers", "BAD_DTYPE", [...push([4], "complex64", 32)]],
  ["fewer bytes than its shape", "BAD_LENGTH", [...push([4], "float32", 12)]],
  ["more bytes than its shape", "BAD_LENGTH", [...push([4], "float32", 20)]],
  ["a shape beyond all memory", "TOO_LARGE", [...push([2 ** 40], "float32", 16)]],
  ["a shape that is none", "BAD_SHAPE", [...push([-1], "float32", 0)]],
  ["a NaN", "NON_FINITE", [...push([4], "float32", 16, 0xff)]],
];

function push(shape: readonly number[], dtype: string, bytes: number, fill = 0): Uint8Array[] {
  return [
    jsonFrame({ query_id: 22, name: "v", alpha: 1, beta: 1 }),
    jsonFrame({ shape, dtype }),
    frameHeader(11, bytes),
    new Uint8Array(bytes).fill(fill),
  ];
}

test("a client that asks for something impossible is told why, and disconnected; nothing changes", async () => {
  const gateway = await startGateway();
  await trainer.createIfNotAlreadyCreated("v", Float32Array.of(1, 2, 3, 4));
  for (const [what, code, frames] of BAD) {
    const socket = await gateway.connect();
    socket.write(Buffer.concat(frames));
    expect(await rest(socket), what).toContain(`{"error":{"code":"${code}"`);
  }
  await gateway.logged(/NON_FINITE/);
  expect([...(await trainer.pullFull("v")).data]).toEqual([1, 2, 3, 4]);
  const python = gateway.python(`Client().pull_part("nobody's", [[0]])`);
  await expect(python).rejects.toThrow("EOFError: the connection ended");
});

test("a client that stops within a frame, is idle or is one too many is disconnected; the others are served", async () => {
  const limits = ["--max-connections", "3", "--stall-timeout", "300ms", "--idle-timeout", "1s"];
  const gateway = await startGateway(...limits);
  const [idle, half] = [await gateway.connect(), await gateway.connect()];
  half.write(PULL("v").subarray(0, 5));
  const third = await gateway.connect();
  third.write(PULL("v"));
  await once(third, "data");
  expect(await rest(await gateway.connect())).toBe("");
  expect(await rest(half)).toContain("TIMEOUT");
  expect(await rest(idle)).toContain("TIMEOUT");
});

test("a client that does not read its reply is disconnected, and its memory is freed", async () => {
  const gateway = await startGateway("--max-memory", "48MiB", "--stall-timeout", "500ms");
  const large = new Float32Array(8 * 1024 * 1024).fill(1);
  await trainer.createIfNotAlreadyCreated("large reply", large);
  const slow = await gateway.connect();
  slow.pause();
  slow.write(PULL("large reply"));
  await gateway.logged(/TIMEOUT: reply: the peer took nothing/);
  await gateway.python(`assert Client().pull_full("large reply").sum() == 8 * 2**20`);
});

test("Ctrl-C lets a request end that has begun, and exits with 0", async () => {
  const gateway = await startGateway();
  const [idle, busy] = [await gateway.connect(), await gateway.connect()];
  const [query, header, frame, bytes] = push([4], "float32", 16) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  busy.write(Buffer.concat([PULL("v"), query, header, frame]));
  await once(busy, "data");
  gateway.running.child.kill("SIGINT");
  expect(await rest(idle)).toBe("");
  const late = connectSocket({ port: gateway.port, host: "127.0.0.1" });
  const [error] = await once(late, "error");
  expect(error).toMatchObject({ code: "ECONNREFUSED" });
  busy.end(bytes);
  await rest(busy);
  const { code, stderr } = await gateway.running.finished;
  expect([code, stderr]).toEqual([0, expect.stringContaining("stopping")]);
});
