import { asMap, integerField, listField, PserverError, textField } from "../protocol/index.ts";
import { parseJson } from "./parse-json.ts";

/** Bounds of the message size that is accepted, whatever `max_payload` the broker has. */
const MESSAGE_BYTES_FLOOR = 8 * 1024 * 1024;
const MESSAGE_BYTES_CEILING = 64 * 1024 * 1024;

/** Headers that the broker adds to a message that was stored. */
const ADDED_HEADER_BYTES = 64 * 1024;

/** Brokers that a greeting may list. */
const URLS_MAX = 4_096;

/** A name, an IPv4 address or an IPv6 one in brackets, and a port. */
const ADDRESS = /^[\w.:[\]-]+:\d{1,5}$/;

/** Message size accepted before the greeting: a broker sends no message before it. */
export const NO_MESSAGE_BYTES = 0;

/**
 * The most bytes of headers and payload that a broker with this greeting can send. Messages that were
 * stored under a higher `max_payload` can be larger: up to 8 MiB are always accepted, and never more
 * than 64 MiB, the most that nats-server allows.
 * @throws BAD_MESSAGE for a greeting that nats.js could not read.
 */
export function messageBytesMax(line: string): number {
  const info = asMap(parseJson(line.slice(line.indexOf("{")), "broker: INFO"), "INFO");
  const version = textField(info, "version");
  if (!/\d+\.\d+\.\d+/.test(version)) throw badGreeting("version", "x.y.z");
  const urls = info["connect_urls"] == null ? [] : listField(info, "connect_urls", URLS_MAX);
  if (!urls.every(isAddress)) throw badGreeting("connect_urls", "a list of host:port");
  const payloadBytes = integerField(info, "max_payload", 1);
  const bytes = Math.min(Math.max(payloadBytes, MESSAGE_BYTES_FLOOR), MESSAGE_BYTES_CEILING);
  return bytes + ADDED_HEADER_BYTES;
}

function isAddress(value: unknown): boolean {
  return typeof value === "string" && ADDRESS.test(value) && URL.canParse(`http://${value}`);
}

function badGreeting(entry: string, expected: string): PserverError {
  return new PserverError("BAD_MESSAGE", `broker: INFO: ${entry}: expected ${expected}`, {
    expected,
  });
}
