import { once, setMaxListeners } from "node:events";
import { PserverError } from "../protocol/errors.ts";
import { EXIT } from "./exit-codes.ts";
import type { IgnorableSignal } from "./ignored-signals.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The part of the process that is watched. */
export type InterruptSource = Pick<NodeJS.Process, "on" | "exit" | "connected" | "channel">;

/**
 * Aborts at the first Ctrl-C, SIGTERM or SIGHUP, when the process that started this one with a channel
 * is gone, or when `readerGone` is aborted; ends the process at once at the second. Signals in `ignored`
 * change nothing.
 */
export function watchInterrupts(
  source: InterruptSource,
  readerGone?: AbortSignal,
  ignored: ReadonlySet<IgnorableSignal> = new Set(),
): AbortSignal {
  const controller = new AbortController();
  // Every call under way listens to the signal, and there may be many.
  setMaxListeners(0, controller.signal);
  const interrupt = (reason: string): void => {
    if (controller.signal.aborted) source.exit(EXIT.interrupted);
    controller.abort(new PserverError("ABORTED", `interrupted by ${reason}`));
  };
  for (const signal of SIGNALS) {
    if (!ignored.has(signal)) source.on(signal, () => interrupt(signal));
  }
  // Without a handler each of these would end the process.
  for (const signal of ignored) source.on(signal, () => {});
  readerGone?.addEventListener("abort", () => interrupt("the end of the reader of its output"));
  if (source.connected) {
    source.on("disconnect", () => interrupt("the end of the process that started this one"));
    // Listening must not keep the process alive once its work is done.
    source.channel?.unref();
  }
  return controller.signal;
}

/** Settles when the signal is aborted. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

/**
 * The result of `work`, unless the signal is aborted first; `work` itself goes on.
 * @throws the signal's reason.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = untilAborted(signal).then((): never => {
    throw signal.reason;
  });
  return await Promise.race([work, aborted]);
}
