// Bundles the page that hosts serve: one script and one style sheet for browsers, beside its document and the
// licences of what they contain.
//
//   node scripts/bundle-page.mjs DIRECTORY

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { licensesOf } from "./licenses-of-bundle.mjs";

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error("usage: node scripts/bundle-page.mjs DIRECTORY");
const source = fileURLToPath(new URL("../src/page/", import.meta.url));
const styles = fileURLToPath(import.meta.resolve("uplot/dist/uPlot.min.css"));

await mkdir(directory, { recursive: true });
const bundle = await rolldown({ input: join(source, "page.ts"), platform: "browser" });
const { output } = await bundle.write({
  file: join(directory, "page.js"),
  format: "esm",
  minify: true,
});
await bundle.close();
await writeFile(join(directory, "licenses.txt"), await licensesOf(output));
await copyFile(join(source, "index.html"), join(directory, "index.html"));
const texts = await Promise.all(
  [styles, join(source, "page.css")].map((file) => readFile(file, "utf8")),
);
await writeFile(join(directory, "page.css"), texts.join("\n"));
