// Proves that nothing a broker sends ends the process or is printed as it came: the connection ends with a warning
// that names what came, and another one is made, which works. A process that plays the broker says what none does, in whole
// and in pieces, to the real connection with nats.js on it.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { openConnection } from "../../../src/transport/connection.ts";
import { start } from "../../cli/spawn-command.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { startTestBroker } from "../../support/broker.ts";
import { HostileBroker } from "../../support/hostile-broker.ts";
import { HANG_MS } from "../../support/limits.ts";
import { SilentLine } from "../../support/silent-line.ts";
import { greetingLine } from "../../transport/greeting-line.ts";

const WAIT = { timeout: HANG_MS, interval: 5 };
const ROLE = { name: "t", inboxPrefix: "_INBOX.t" };

type Connection = Awaited<ReturnType<typeof openConnection>>;

async function connectTo(url: string): Promise<Connection> {
  return await openConnection({ servers: [url], timeoutMs: 5_000 }, ROLE);
}

/** A connection, and what comes to its only subscription. */
async function listenTo(url: string): Promise<{ connection: Connection; received: string[] }> {
  const connection = await connectTo(url);
  const received: string[] = [];
  connection.subscribe("a", {
    callback: (_error, message) => void received.push(message.string()),
  });
  return { connection, received };
}

/** All that was printed while `run` ran. */
async function printed(run: () => Promise<void>): Promise<string> {
  const spies = (["log", "error", "info", "trace"] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation(() => undefined),
  );
  await run();
  return spies.flatMap((spy) => spy.mock.calls.flat().map(String)).join("\n");
}

/** The warnings of this process, as they are emitted. */
let warnings: (string | Error)[] = [];
beforeEach(() => {
  warnings = [];
  vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(warning));
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Waits until a message to the only subscription arrives. */
async function heard(broker: HostileBroker, received: string[], text: string): Promise<void> {
  const speak = (): void => {
    const sids = Array.from(
      { length: 3 },
      (_, sid) => `MSG a ${sid + 1} ${text.length}\r\n${text}\r\n`,
    );
    broker.say(Buffer.from(sids.join("")));
    expect(received).toContain(text);
  };
  await vi.waitFor(speak, WAIT);
}

describe("a broker that sends what no broker sends", () => {
  test.each([
    ["a message of 4.5 GB", "MSG a 1 4500000000\r\n"],
    ["a message of 60 digits", `MSG a 1 ${"9".repeat(60)}\r\n`],
    ["commands to the terminal", "\u001b[2J\u001b]0;owned\u0007\u009b\r\n"],
    ["commands to the terminal in an error", "-ERR '\u001b[2J\u009b'\r\n\u001b[2J\r\n"],
    ["a line without an end", "MSG ".padEnd(70_000, "a")],
    ["another greeting that is none", "INFO {\u001b[2J\r\n"],
    ["a payload without its end", "MSG a 1 3\r\nabcde\r\n"],
  ])("%s: is left, and another connection is made", async (_what, text) => {
    await using broker = await HostileBroker.open(greetingLine());
    const output = await printed(async () => {
      const { connection, received } = await listenTo(broker.url);
      await heard(broker, received, "before");
      broker.say(Buffer.from(text, "latin1"));
      await vi.waitFor(() => expect(broker.accepted).toBeGreaterThan(1), WAIT);
      await heard(broker, received, "after");
      await connection.close();
    });
    expect(output).toBe("");
    expect(warnings).toMatchObject([{ code: "BAD_MESSAGE", name: "PserverError" }]);
    const [{ message }] = warnings as [Error];
    expect(message).toContain(
      `the connection to ${broker.url.slice("nats://".length)} begins again`,
    );
    expect(message).not.toMatch(/\p{Cc}/u);
  });

  test("a malformed line is told with its text, and the next one not before a minute is over", async () => {
    await using broker = await HostileBroker.open(greetingLine());
    const now = vi.spyOn(performance, "now").mockReturnValue(1_000);
    const { connection } = await listenTo(broker.url);
    const breakWith = async (line: string): Promise<void> => {
      const before = broker.accepted;
      broker.say(Buffer.from(`${line}\r\n`));
      await vi.waitFor(() => expect(broker.accepted).toBeGreaterThan(before), WAIT);
    };
    await breakWith("MSG a 1 1e1");
    await breakWith("MSG a 1 2e2");
    now.mockReturnValue(60_999);
    await breakWith("MSG a 1 3e3");
    now.mockReturnValue(61_000);
    await breakWith("MSG a 1 4e4");
    expect(warnings.map((each) => /MSG a 1 \de\d/.exec(String(each))?.[0])).toEqual([
      "MSG a 1 1e1",
      "MSG a 1 4e4",
    ]);
    await connection.close();
  });

  test("any bytes, in any pieces: one connection after the other, and the process survives", async () => {
    await using broker = await HostileBroker.open(greetingLine());
    const output = await printed(async () => {
      const { connection, received } = await listenTo(broker.url);
      const bytes = fc.oneof(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc
          .constantFrom(
            ...["MSG a 1 5\r\nab", "HMSG a 1 9 3\r\n", "\r\n", "INFO {}\r\n", "MSG a 1 "],
          )
          .map((text) => Buffer.from(text)),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 6 }), async (pieces) => {
          const before = broker.accepted;
          for (const piece of pieces) broker.say(piece);
          // Whatever it took these for, this is wrong.
          broker.say(Buffer.from(`\r\n\r\nMSG a 1 4500000000\r\n${"\r\n!\r\n".repeat(50)}`));
          await vi.waitFor(() => expect(broker.accepted).toBeGreaterThan(before), WAIT);
        }),
        { numRuns: 15 },
      );
      await heard(broker, received, "after");
      await connection.close();
    });
    expect(output).toBe("");
  });

  test.each([
    ["is no broker", "220 \u001b[2Jmail\r\n"],
    ["greets with noise", "INFO {\u009b]\r\n"],
    ["greets without an end", `INFO {${" ".repeat(5_000_000)}`],
    ["greets with no version", "INFO {}\r\n"],
    ["goes on with noise", `${greetingLine()}\u001b[2J\r\n`],
  ])(
    "one that %s is NO_BROKER, told once and without its control characters",
    async (_what, greeting) => {
      await using broker = await HostileBroker.open(greeting);
      const output = await printed(async () => {
        const error = await connectTo(broker.url).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(PserverError);
        expect(error).toMatchObject({ code: "NO_BROKER" });
        const { message } = error as PserverError;
        expect(message).toContain("broker");
        expect(message).not.toMatch(/\p{Cc}/u);
      });
      expect(output).toBe("");
      expect(warnings).toEqual([]);
    },
  );
});

test("one that answers the first PING with noise is told with it, not only that it took too long", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(greetingLine());
    socket.once("data", () => socket.write("MSG a 1 1e1\r\n"));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const error = await atDeadline("received MSG a 1 1e1", (timeoutMs) =>
    openConnection({ servers: [`nats://127.0.0.1:${port}`], timeoutMs }, ROLE),
  );
  expect(error).toMatchObject({
    code: "NO_BROKER",
    message: expect.stringContaining("received MSG a 1 1e1"),
  });
});

test("a host says what line was malformed on each of its connections, and goes on", async () => {
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  await using line = await SilentLine.open(broker.port);
  const home = await mkdtemp(join(tmpdir(), "pserver-malformed-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const host = start(
    ["host", "--url", line.url, "--job", "j", "--shards", "1", "--workers", "1", "--json"],
    { cwd: home },
  );
  await host.firstLine;
  line.say("MSG a 1 1e1");
  // Two connections of its main thread, and two of its worker.
  const told = /begins again: .*received MSG a 1 1e1/g;
  await vi.waitFor(() => expect(host.errors().match(told)).toHaveLength(4), WAIT);
  const trainer = await connect({ url: line.url, job: "j", timeoutMs: HANG_MS });
  await trainer.createIfNotAlreadyCreated("sum", Float32Array.of(1));
  expect((await trainer.getParams(["sum"]))[0]?.data).toEqual(Float32Array.of(1));
  await trainer.close();
});

test("a callback that throws ends the connection, and another one is made", async () => {
  const broker = await startTestBroker();
  try {
    await printed(async () => {
      const connection = await connectTo(broker.url);
      const received: string[] = [];
      connection.subscribe("a", {
        callback: (_error, message) => {
          if (message.string() === "throw") throw new Error("thrown");
          received.push(message.string());
        },
      });
      connection.publish("a", "throw");
      const speak = (): void => {
        connection.publish("a", "here");
        expect(received).toContain("here");
      };
      await vi.waitFor(speak, { timeout: HANG_MS, interval: 50 });
      await connection.close();
    });
  } finally {
    await broker.remove();
  }
});
