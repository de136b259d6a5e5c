// Proves how long a host that starts tries: while an error can be retried and there is time, and not
// where the broker says that it has no JetStream. The clock is a fake one.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StartRetries } from "../../../src/actors/host/host.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

const WITH = { jetstream: true } as const;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function retries(info: object, timeoutMs = 10_000): StartRetries {
  return new StartRetries({ info } as ConstructorParameters<typeof StartRetries>[0], timeoutMs);
}

/** Work that fails with a code so often, and then gives its number of attempts. */
function failing(code: "JETSTREAM_UNAVAILABLE" | "DENIED", times: number): () => Promise<number> {
  let attempts = 0;
  return async () => {
    attempts += 1;
    if (attempts <= times) throw new PserverError(code, `attempt ${attempts}`);
    return attempts;
  };
}

test("work is done again while its error can be retried", async () => {
  const started = retries(WITH).run(failing("JETSTREAM_UNAVAILABLE", 5));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await started).toBe(6);
});

test("until the time is over, which all work of one start shares", async () => {
  const shared = retries(WITH);
  const first = shared.run(failing("JETSTREAM_UNAVAILABLE", 5));
  await vi.advanceTimersByTimeAsync(5_000);
  await first;
  let ended: unknown;
  const second = shared.run(failing("JETSTREAM_UNAVAILABLE", 1_000)).catch((error: unknown) => {
    ended = error;
  });
  await vi.advanceTimersByTimeAsync(3_500);
  expect(ended).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_500);
  await second;
  expect(ended).toMatchObject({ code: "JETSTREAM_UNAVAILABLE" });
});

test("an error that no retry helps ends it at once", async () => {
  await expect(retries(WITH).run(failing("DENIED", 1))).rejects.toMatchObject({
    code: "DENIED",
    message: "attempt 1",
  });
});

test("a broker that has no JetStream, and is in no cluster, is no reason to wait", async () => {
  await expect(retries({}).run(failing("JETSTREAM_UNAVAILABLE", 1))).rejects.toMatchObject({
    code: "NO_JETSTREAM",
    message: "attempt 1",
  });
  const inCluster = retries({ cluster: "c" }).run(failing("JETSTREAM_UNAVAILABLE", 1));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await inCluster).toBe(2);
});
