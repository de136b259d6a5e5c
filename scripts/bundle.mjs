// Bundles modules that tsc has compiled: a file for each program, library and thread, and chunks that they
// share, all in one directory, so that a thread finds its file next to the chunk that starts it. A program
// that loads 60 files starts in half the time of one that loads 400.
//
//   node scripts/bundle.mjs package MODULES DIRECTORY    with NATS's client, without other packages
//   node scripts/bundle.mjs tests MODULES DIRECTORY      programs of end-to-end tests, which start some 500

import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join, resolve, sep } from "node:path";
import { rolldown } from "rolldown";
import { licensesOf } from "./licenses-of-bundle.mjs";

const PROGRAMS = {
  pserver: "cli/pserver.js",
  legion: "cli/legion.js",
};

/**
 * The first lines of a program: a shell notes which signals it was started to ignore, as under nohup, because
 * Node.js forgets that before it runs anything. To JavaScript they are a string and a comment.
 */
const PROGRAM_START = [
  "#!/bin/sh",
  '":" //; ps_ignored=; for ps_name in HUP INT QUIT TERM; do ps_heard=; trap ps_heard=1 $ps_name;' +
    ' kill -s $ps_name $$; trap - $ps_name; [ "$ps_heard" ] || ps_ignored="$ps_ignored $ps_name"; done;' +
    ' PSERVER_IGNORED_SIGNALS=$ps_ignored; export PSERVER_IGNORED_SIGNALS; exec node "$0" "$@"',
].join("\n");

const LIBRARIES = {
  index: "client/index.js",
  history: "history/index.js",
  protocol: "protocol/index.js",
};

/** Named as in the sources, where they are next to the module that starts them. */
const THREADS = {
  "host-worker": "actors/host/host-worker.js",
  "replay-worker": "history/replay/replay-worker.js",
};

const TEST_PROGRAMS = "test/e2e/programs";

/** Modules that are bundled, and modules that stay outside. */
const BUNDLES = {
  package: () => ({
    inputs: { ...PROGRAMS, ...LIBRARIES, ...THREADS },
    // One of NATS's packages says that it needs Node.js 22, although it runs on 20: package managers that heed it
    // would refuse this one (docs/internals/adr/0038-the-installed-command-starts-everywhere.md).
    external: /^(?!@nats-io\/|tweetnacl$)[^./]/,
  }),
  tests: async () => ({
    inputs: { ...(await testPrograms()), ...below("src", THREADS) },
    // etcd3 reads files that lie beside its modules.
    external: /^(node:|etcd3$)/,
  }),
};

const [kind, modules, directory] = process.argv.slice(2);
if (directory === undefined || !Object.hasOwn(BUNDLES, kind)) {
  throw new Error("usage: node scripts/bundle.mjs package|tests MODULES DIRECTORY");
}
const root = resolve(modules);

/** Lists every program of end-to-end tests, by its name. */
async function testPrograms() {
  const files = (await readdir(join(root, TEST_PROGRAMS))).filter((file) => file.endsWith(".js"));
  return Object.fromEntries(
    files.map((file) => [basename(file, ".js"), join(TEST_PROGRAMS, file)]),
  );
}

function below(folder, inputs) {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, file]) => [name, join(folder, file)]),
  );
}

/** Reads own modules with the maps to their sources, from which the maps of the chunks are made. */
const withSourceMaps = {
  name: "source-maps",
  async load(file) {
    if (!file.startsWith(root + sep)) return null;
    const [code, map] = await Promise.all([
      readFile(file, "utf8"),
      readFile(`${file}.map`, "utf8"),
    ]);
    return { code, map: JSON.parse(map) };
  },
};

const { inputs, external } = await BUNDLES[kind]();
const bundle = await rolldown({
  cwd: root,
  input: Object.fromEntries(Object.entries(inputs).map(([name, file]) => [name, `./${file}`])),
  platform: "node",
  external,
  plugins: [withSourceMaps],
});
const banner = ({ name, isEntry }) =>
  kind === "package" && isEntry && Object.hasOwn(PROGRAMS, name) ? PROGRAM_START : "";
const { output } = await bundle.write({
  dir: resolve(directory),
  format: "esm",
  sourcemap: true,
  postBanner: banner,
});
await bundle.close();
if (kind === "package") {
  await writeFile(join(directory, "licenses.txt"), await licensesOf(output));
  for (const program of Object.keys(PROGRAMS)) await chmod(join(directory, `${program}.js`), 0o755);
}
