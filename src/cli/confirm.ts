import { PserverError } from "../protocol/errors.ts";
import { askLine } from "./ask-line.ts";
import type { CliContext } from "./context.ts";

/**
 * Asks a person a yes-or-no question on the message stream. Anything but `y` or `yes`, and the end of the
 * input, means no.
 * @throws BAD_VALUE, naming `--yes`, if the input is no terminal; the signal's reason at Ctrl-C.
 */
export async function confirm(context: CliContext, question: string): Promise<boolean> {
  if (context.stdin.isTTY !== true) {
    throw new PserverError("BAD_VALUE", `${question} Nobody can be asked here: give --yes`);
  }
  return /^y(es)?$/i.test(await askLine(context, `${question} [y/N]`));
}
