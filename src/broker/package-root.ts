import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PserverError } from "../protocol/errors.ts";

/**
 * The directory of this package: the nearest one above this file that contains `nats.conf`. The
 * same code runs from `src/`, `dist/` and `build/programs/src/`, which are at different depths.
 * @throws INTERNAL if there is none: the installation is incomplete.
 */
export function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let directory = start; ; ) {
    if (existsSync(join(directory, "nats.conf"))) return directory;
    const parent = dirname(directory);
    if (parent === directory) break;
    directory = parent;
  }
  throw new PserverError("INTERNAL", `no nats.conf in any directory above ${start}`, {
    expected: "nats.conf",
    received: start,
  });
}
