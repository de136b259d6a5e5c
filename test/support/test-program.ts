import { join } from "node:path";

const BUNDLED = join(import.meta.dirname, "../../build/programs/bundled");

/** Path of a program of `test/e2e/programs`, which `make programs` bundles with all that it imports. */
export function testProgram(name: string): string {
  return join(BUNDLED, `${name}.js`);
}
