// What a bundle owes to the packages of which it contains modules: their names, versions and licences.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Between the licences of two packages. */
const LINE = `\n${"-".repeat(80)}\n\n`;

const PREAMBLE = "Files of this directory contain these packages.\n\n";

/** Returns the text with the licences of all packages of which `output`, rolldown's, has modules. */
export async function licensesOf(output) {
  const directories = output
    .flatMap(({ moduleIds = [] }) => moduleIds)
    .flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id) ?? []);
  const texts = [...new Set(directories)].sort().map(async (found) => {
    const { name, version } = JSON.parse(await readFile(join(found, "package.json"), "utf8"));
    return `${name} ${version}\n\n${await readFile(join(found, "LICENSE"), "utf8")}`;
  });
  return `${PREAMBLE}${(await Promise.all(texts)).join(LINE)}`;
}

/** Lists the packages in a text of {@link licensesOf}, each as `name@version`. */
export function packagesIn(text) {
  return text
    .slice(PREAMBLE.length)
    .split(LINE)
    .map((part) => part.slice(0, part.indexOf("\n")).replace(" ", "@"));
}
