import { HANG_MS } from "./limits.ts";

/** The first deadline that a call is given; long enough on a machine with nothing else to do. */
const FIRST_MS = 1_500;

/**
 * Gives a call a deadline, at which it is to fail with an error whose code and message hold `text`. What
 * it cannot have found out by a short deadline on a busy machine it gets a longer one for, up to the
 * limit of what hangs.
 * @returns the error of the last try, for the caller to look at; undefined if the call succeeded.
 */
export async function atDeadline(
  text: string | RegExp,
  call: (timeoutMs: number) => Promise<unknown>,
): Promise<unknown> {
  for (let timeoutMs = FIRST_MS; ; timeoutMs *= 4) {
    const error = await call(timeoutMs).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (timeoutMs * 4 > HANG_MS || inWords(error).search(text) >= 0) return error;
  }
}

function inWords(error: unknown): string {
  if (!(error instanceof Error)) return "";
  return "code" in error ? `${error.code}: ${error.message}` : error.message;
}
