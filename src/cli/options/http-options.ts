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

/** Adds the flags of a command that serves HTTP; `shown` is the default of `--http`, for help. */
export function addHttpOptions(command: Command, shown: string): Command {
  return command
    .option(
      "--http <address>",
      `where to serve metrics, health and JSON: a port of this machine, ADDRESS:PORT, or off (default: ${shown})`,
      parseHttp,
    )
    .option(
      "--http-token <file>",
      "file with the token that requests for metrics and JSON must carry; needed where other machines reach the address",
    )
    .option("--http-trainers", "metrics for each trainer by its id, too");
}

function parseHttp(text: string): HttpAddress | "off" {
  if (text === "off") return "off";
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
