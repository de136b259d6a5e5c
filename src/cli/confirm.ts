import { createInterface } from "node:readline";
import { PserverError } from "../protocol/errors.ts";
import type { CliContext } from "./context.ts";
import { unlessAborted } from "./interrupts.ts";

/**
 * Asks a person a question that is answered with yes or no; anything but `y` or `yes`, and the end of the
 * input, is no. The question goes to the message stream.
 * @throws BAD_VALUE where nobody can be asked, which names `--yes`; the signal's reason at Ctrl-C.
 */
export async function confirm(context: CliContext, question: string): Promise<boolean> {
  const { stdin, stderr, signal } = context;
  if (stdin.isTTY !== true) {
    throw new PserverError("BAD_VALUE", `${question} Nobody can be asked here: give --yes`);
  }
  // The terminal edits the line and turns Ctrl-C into a signal; this only reads.
  const lines = createInterface({ input: stdin, terminal: false });
  try {
    stderr.write(`${question} [y/N] `);
    const answer = new Promise<string>((resolve) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
    });
    return /^y(es)?$/i.test((await unlessAborted(signal, answer)).trim());
  } finally {
    lines.close();
  }
}
