// Proves the calls between threads over a pair of ports: answers and errors reach their callers in any order, progress
// comes before the answer, bytes are moved, a call before the start waits, and the end of the thread ends all that is
// open with one typed error. The end of a thread is an event that the test emits; real threads run in the tests of
// hosts and replays.
import { EventEmitter, once } from "node:events";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type CalledWorker, serveThread, WorkerThread } from "../../src/actors/worker-thread.ts";
import { PserverError } from "../../src/protocol/index.ts";

interface TestCalls {
  later(text: string): string;
  fail(text: string): void;
  count(to: number): number;
  bytes(length: number): Uint8Array;
  never(nothing: undefined): void;
}

interface TestEvent {
  readonly told: string;
}

let ports: MessageChannel;
/** What the thread that was started sees, as a worker. */
let worker: EventEmitter & Pick<MessagePort, "postMessage"> & { terminate(): Promise<number> };
let terminated: number;
let events: string[];
let thread: WorkerThread<TestCalls, TestEvent>;
/** Lets `later` answer, by its argument. */
let release: Map<string, () => void>;
let sent: Uint8Array[];

beforeEach(() => {
  ports = new MessageChannel();
  [terminated, events, release, sent] = [0, [], new Map(), []];
  worker = Object.assign(new EventEmitter(), {
    postMessage: (message: unknown) => ports.port1.postMessage(message),
    terminate: async () => ++terminated,
  });
  ports.port1.on("message", (message) => worker.emit("message", message));
  thread = new WorkerThread(worker as unknown as CalledWorker, "thread 7", ({ told }) =>
    events.push(told),
  );
});

afterEach(() => {
  ports.port1.close();
});

function serve(): Promise<void> {
  return serveThread<TestCalls, TestEvent>(async (emit) => {
    emit({ told: "starting" });
    return {
      later: (text) => new Promise((resolve) => release.set(text, () => resolve(`${text}!`))),
      fail: (text) => {
        throw new PserverError("NO_SPACE", text, { expected: 3 });
      },
      count: (to, progress) => {
        for (let done = 1; done <= to; done++) progress(done, to);
        return to;
      },
      bytes: (length) => {
        const bytes = new Uint8Array(length).fill(7);
        sent.push(bytes);
        return bytes;
      },
      never: () => new Promise(() => undefined),
    };
  }, ports.port2);
}

test("calls are answered in any order, also those before the thread has started", async () => {
  const [first, second] = [thread.ask("later", "a"), thread.ask("later", "b")];
  await serve();
  await thread.ready;
  await thread.ask("count", 0);
  release.get("b")?.();
  expect(await second).toBe("b!");
  release.get("a")?.();
  expect(await first).toBe("a!");
  expect(events).toEqual(["starting"]);
});

test("an error of the work keeps its code, text and details", async () => {
  await serve();
  const failed = thread.ask("fail", "no room");
  await expect(failed).rejects.toBeInstanceOf(PserverError);
  await expect(failed).rejects.toMatchObject({
    ...{ code: "NO_SPACE", message: "no room", details: { expected: 3 } },
  });
});

test("progress comes before the answer", async () => {
  await serve();
  const told: number[][] = [];
  expect(await thread.ask("count", 3, (...counts) => told.push(counts))).toBe(3);
  expect(told).toEqual([
    [1, 3],
    [2, 3],
    [3, 3],
  ]);
});

test("bytes are moved and not copied", async () => {
  await serve();
  expect(await thread.ask("bytes", 5)).toEqual(new Uint8Array(5).fill(7));
  expect(sent[0]?.byteLength).toBe(0);
});

test("what cannot be sent fails by itself", async () => {
  await serve();
  const notData = (() => undefined) as unknown as string;
  await expect(thread.ask("later", notData)).rejects.toThrow("could not be cloned");
  expect(await thread.ask("count", 1)).toBe(1);
});

test("the end of the thread ends open calls, and later ones", async () => {
  await serve();
  const open = [thread.ask("never", undefined), thread.ask("later", "a")];
  worker.emit("exit", 3);
  const ended = { code: "INTERNAL", message: "thread 7 ended with code 3" };
  for (const call of open) await expect(call).rejects.toMatchObject(ended);
  await expect(thread.ask("count", 1)).rejects.toMatchObject(ended);
  expect(await thread.ended).toMatchObject(ended);
});

test("an error that ends the thread counts, with its code, and not the exit that follows", async () => {
  const error = Object.assign(new Error("no broker"), { code: "NO_BROKER", details: { job: "j" } });
  worker.emit("error", error);
  worker.emit("exit", 1);
  const ended = { code: "NO_BROKER", message: "no broker", details: { job: "j" } };
  await expect(thread.ready).rejects.toMatchObject(ended);
  await expect(thread.ask("count", 1)).rejects.toMatchObject(ended);
});

test("a thread that is stopped is ended, with the reason for all that is open", async () => {
  await serve();
  const open = thread.ask("never", undefined);
  const stopped = thread.stop(new PserverError("ABORTED", "enough"));
  await expect(open).rejects.toMatchObject({ code: "ABORTED" });
  await stopped;
  expect(terminated).toBe(1);
});

test("a thread that cannot start says nothing and fails with the error", async () => {
  const start = () => Promise.reject(new PserverError("DENIED", "no"));
  await expect(serveThread<TestCalls>(start, ports.port2)).rejects.toMatchObject({
    code: "DENIED",
  });
  ports.port2.close();
  await once(ports.port1, "close");
  expect(events).toEqual([]);
});

test("outside a worker thread nothing is served", async () => {
  const start = () => Promise.reject(new Error("not started"));
  await expect(serveThread<TestCalls>(start, null)).rejects.toMatchObject({ code: "INTERNAL" });
});
