import { InvalidArgumentError } from "commander";
import { checkPrefix, parseEtcdEndpoints, toAdvertised } from "../../actors/job/etcd-space.ts";
import { parseDuration } from "../../client/calls/calls.ts";
import { type GuardSetting, parseConfigText, toGuardSetting } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import { checkJobName, escapeId } from "../../protocol/names.ts";

const SIZE = /^(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|B)?$/i;
const SIZE_EXPONENTS = { K: 1, M: 2, G: 3, T: 4 } as const;

/** The longest delay of a timer of Node.js. */
const DURATION_MS_MAX = 2 ** 31 - 1;

/** Makes a parser of whole numbers from `min` to `max`. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= min && number <= max) return number;
    throw expected(`a whole number from ${min} to ${max}`, text);
  };
}

/** Parses a finite number, such as `0.01` or `-1e-3`. */
export function finiteNumber(text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  throw expected("a finite number", text);
}

/** Parses a finite number above 0. */
export function positiveNumber(text: string): number {
  const number = finiteNumber(text);
  if (number > 0) return number;
  throw expected("a number above 0", text);
}

/** Parses a guard: a map of settings in JSON or YAML, or `off`. */
export function parseGuard(text: string): GuardSetting {
  try {
    return toGuardSetting(parseConfigText(text), "--guard");
  } catch (error) {
    throw new InvalidArgumentError(ensureError(error).message);
  }
}

/** Parses bytes: `1048576`, `512MB` (powers of 1000) or `1GiB` (powers of 1024). */
export function parseSize(text: string): number {
  const match = SIZE.exec(text);
  const letter = match?.[2]?.toUpperCase() as keyof typeof SIZE_EXPONENTS | undefined;
  const base = match?.[3] ? 1024 : 1000;
  const factor = letter === undefined ? 1 : base ** SIZE_EXPONENTS[letter];
  const bytes = Math.round(Number(match?.[1]) * factor);
  if (match !== null && Number.isSafeInteger(bytes) && bytes > 0) return bytes;
  throw expected("a size such as 1048576, 512MB or 1GiB", text);
}

/** Makes a parser of bytes as {@link parseSize} that accepts `mib` MiB or more. */
export function sizeOfAtLeast(mib: number): (text: string) => number {
  return (text) => {
    const bytes = parseSize(text);
    if (bytes >= mib * 1024 ** 2) return bytes;
    throw expected(`a size of ${mib}MiB or more`, text);
  };
}

/** Parses a time, as `500ms`, `5s`, `1m30s` or a bare number of seconds; returns milliseconds. */
export function parseTimeout(text: string): number {
  const durationMs = checked(() =>
    parseDuration(/^\d+(?:\.\d+)?$/.test(text) ? `${text}s` : text, "duration"),
  );
  if (durationMs >= 1 && durationMs <= DURATION_MS_MAX) return Math.round(durationMs);
  throw expected("a duration from 1ms to 24 days", text);
}

/** Parses the name of a job. */
export function parseJob(text: string): string {
  return checked(() => checkJobName(text));
}

/** Parses names of jobs, with commas between them. */
export function parseJobs(text: string): string[] {
  return text.split(",").map(parseJob);
}

/** Parses the id of a trainer or host. */
export function parseId(text: string): string {
  return checked(() => {
    escapeId(text);
    return text;
  });
}

/** Parses addresses of one etcd, with commas between them. */
export function parseEndpoints(text: string): string[] {
  return checked(() => parseEtcdEndpoints(text));
}

/** Parses the prefix of keys in etcd. */
export function parsePrefix(text: string): string {
  return checked(() => checkPrefix(text));
}

/** Parses addresses of the broker without credentials, which may be published. */
export function parseAdvertised(text: string): string[] {
  return checked(() => toAdvertised(text));
}

/** Makes the error for a wrong argument; commander puts the option's name before it. */
function expected(what: string, received: string): InvalidArgumentError {
  return new InvalidArgumentError(`expected ${what}; received ${JSON.stringify(received)}`);
}

function checked<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof PserverError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}
