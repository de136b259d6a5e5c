// Bundles modules that tsc has compiled: a file for each program, library and thread, and chunks that they
// share, all in one directory, so that a thread finds its file next to the chunk that starts it. A program
// that loads 60 files starts in half the time of one that loads 400.
//
//   node scripts/bundle.mjs package MODULES DIRECTORY    without the packages that this one depends on
//   node scripts/bundle.mjs tests MODULES DIRECTORY      programs of end-to-end tests, which start some 500

import { chmod, readdir, readFile } from "node:fs/promises";
import { basename, join, resolve, sep } from "node:path";
import { rolldown } from "rolldown";

const PROGRAMS = {
  pserver: "cli/pserver.js",
  legion: "cli/legion.js",
};

const LIBRARIES = {
  index: "client/index.js",
  history: "history/index.js",
  protocol: "protocol/index.js",
};

/** Named as in the sources, where they are next to the module that starts them. */
const THREADS = {
  "host-worker": "actors/host/host-worker.js",
  "replay-worker": "history/replay/replay-worker.js",
  "hdf5-worker": "model-files/hdf5/hdf5-worker.js",
};

const TEST_PROGRAMS = "test/e2e/programs";

/** What is bundled, and which modules stay outside. */
const BUNDLES = {
  package: () => ({ inputs: { ...PROGRAMS, ...LIBRARIES, ...THREADS }, external: /^[^./]/ }),
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

/** Every program of end-to-end tests, by its name. */
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
await bundle.write({ dir: resolve(directory), format: "esm", sourcemap: true });
await bundle.close();
if (kind === "package") {
  for (const program of Object.keys(PROGRAMS)) await chmod(join(directory, `${program}.js`), 0o755);
}
