import { type Command, InvalidArgumentError } from "commander";
import { type HttpAddress, LOOPBACK, parseHttpAddress } from "../../http/address.ts";
import { ensureError, mismatch } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { readText } from "../../system/file-errors.ts";

/** Flags of a command that serves HTTP; each is undefined unless given. */
export interface HttpFlags {
  readonly http?: HttpAddress | "off";
  /** File with the token that requests must carry. */
  readonly httpToken?: string;
  /** Whether trainers are counted one by one. */
  readonly httpTrainers?: boolean;
}

const TOKEN_FLAG = "--http-token <file>";

/** Flags of a command that serves only the page; each is undefined unless given. */
export interface PageFlags {
  readonly http?: HttpAddress;
  readonly httpToken?: string;
}

/** Adds the flags of a command that serves HTTP; `shown` is the default of `--http`, for help. */
export function addHttpOptions(command: Command, shown: string): Command {
  return command
    .option(
      "--http <address>",
      `where to serve metrics, health and JSON: a port of this machine, ADDRESS:PORT, or off (default: ${shown})`,
      parseHttp,
    )
    .option(
      TOKEN_FLAG,
      "file with the token that requests for metrics and JSON must carry, and with which the page forks and rewinds; needed where other machines reach the address",
    )
    .option("--http-trainers", "metrics for each trainer by its id, too");
}

/** Adds the flags of a command that serves only the page. */
export function addPageOptions(command: Command): Command {
  return command
    .option(
      "--http <address>",
      "where to serve the page: a port of this machine, or ADDRESS:PORT (default: a free port)",
      parseAddress,
    )
    .option(
      TOKEN_FLAG,
      "file with a token that the page asks for, and with which it forks and rewinds; needed where other machines reach the address",
    );
}

function parseHttp(text: string): HttpAddress | "off" {
  return text === "off" ? "off" : parseAddress(text);
}

function parseAddress(text: string): HttpAddress {
  try {
    return parseHttpAddress(text);
  } catch (error) {
    throw new InvalidArgumentError(ensureError(error).message);
  }
}

/** Where and for whom HTTP is served. */
export interface HttpSetting {
  readonly address: HttpAddress;
  /** Whether any free port will do if that of the address is taken. */
  readonly takesOtherPort: boolean;
  readonly token?: string;
}

/**
 * Reads the flags of {@link addPageOptions}: without an address, any free port of this machine.
 * @throws as {@link toHttpSetting}.
 */
export function toPageSetting({ http, httpToken }: PageFlags): HttpSetting {
  const token = httpToken === undefined ? undefined : readHttpToken(httpToken);
  return {
    address: http ?? { host: LOOPBACK, port: 0 },
    takesOtherPort: false,
    ...defined({ token }),
  };
}

/**
 * Reads the flags; returns undefined if no HTTP is served. `port`: the port on loopback if none is given; undefined if
 * nothing is served then.
 * @throws BAD_VALUE for a token without an address, or a file that holds none; IO.
 */
export function toHttpSetting(
  { http, httpToken }: HttpFlags,
  port: number | undefined,
): HttpSetting | undefined {
  const usual = port === undefined ? undefined : { host: LOOPBACK, port };
  const address = http === "off" ? undefined : (http ?? usual);
  if (address === undefined) {
    if (httpToken === undefined) return undefined;
    throw mismatch("BAD_VALUE", "--http-token", "--http with an address", "none");
  }
  const token = httpToken === undefined ? undefined : readHttpToken(httpToken);
  return { address, takesOtherPort: http === undefined, ...defined({ token }) };
}

function readHttpToken(path: string): string {
  const token = readText("read the token", path).trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const expected = `a file with one word of printable characters`;
  throw mismatch("BAD_VALUE", "--http-token", expected, JSON.stringify(path), { path });
}
