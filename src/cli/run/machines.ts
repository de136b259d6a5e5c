import { statSync } from "node:fs";
import { mismatch } from "../../protocol/mismatch.ts";
import { readText } from "../../system/file-errors.ts";

/** Destinations of ssh that it cannot take for an option. */
const MACHINE = /^[A-Za-z0-9_[][A-Za-z0-9_.:@%[\]-]*$/;

/**
 * The machines of `--machines`: names with commas between them, or a file with one a line, where `#` begins a
 * comment.
 * @throws BAD_VALUE for a name that is none, or if there is none; IO if the file cannot be read.
 */
export function readMachines(given: string | undefined): string[] {
  if (given === undefined) {
    const expected = "names with commas, or a file, with --launcher ssh";
    throw mismatch("BAD_VALUE", "--machines", expected, "none");
  }
  const isFile = statSync(given, { throwIfNoEntry: false })?.isFile() === true;
  if (!isFile && given.includes("/"))
    throw mismatch("BAD_VALUE", "--machines", "a file that exists", JSON.stringify(given));
  const lines = isFile ? readText("read the machines", given).split("\n") : given.split(",");
  const names = lines.map((line) => line.replace(/#.*/, "").trim()).filter((line) => line !== "");
  const wrong = names.find((name) => !MACHINE.test(name));
  if (wrong !== undefined)
    throw mismatch("BAD_VALUE", "--machines", "names of machines", JSON.stringify(wrong));
  if (names.length === 0) throw mismatch("BAD_VALUE", "--machines", "at least one machine", "none");
  return names;
}
