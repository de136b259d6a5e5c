import { PserverError } from "../protocol/errors.ts";
import { askLine } from "./ask-line.ts";
import type { CliContext } from "./context.ts";

/**
 * Asks a person a question that is answered with yes or no; anything but `y` or `yes`, and the end of the
 * input, is no. The question goes to the message stream.
 * @throws BAD_VALUE where nobody can be asked, which names `--yes`; the signal's reason at Ctrl-C.
 */
export async function confirm(context: CliContext, question: string): Promise<boolean> {
  if (context.stdin.isTTY !== true) {
    throw new PserverError("BAD_VALUE", `${question} Nobody can be asked here: give --yes`);
  }
  return /^y(es)?$/i.test(await askLine(context, `${question} [y/N]`));
}
