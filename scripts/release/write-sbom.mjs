// Writes what is in the files of a release as CycloneDX JSON. The same inputs give the same bytes: times are that
// of the commit, in SOURCE_DATE_EPOCH, and there is no serial number.
//
//   node scripts/release/write-sbom.mjs wheel ARCHITECTURE
//       prints what the wheel for x86_64 or aarch64 contains besides our own code
//   node scripts/release/write-sbom.mjs release DIRECTORY
//       prints what the npm tarball and the wheels in DIRECTORY contain; run it where the package was built

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { packagesIn } from "../licenses-of-bundle.mjs";

const ROOT = join(import.meta.dirname, "../..");

/** Debian's names of architectures. */
const DEBIAN = { x86_64: "amd64", aarch64: "arm64" };

/** How npm marks what only development needs. */
const DEVELOPMENT = "cdx:npm:package:development";

/** Files in which `make build` says which packages are bundled. */
const BUNDLED = ["dist/licenses.txt", "dist/page/licenses.txt"];

/** Returns the libraries that the wheel for an architecture carries, as components. */
function carriedComponents({ debian, libraries }, architecture) {
  if (!Object.hasOwn(DEBIAN, architecture)) {
    throw new Error(`expected ${Object.keys(DEBIAN).join(" or ")}; received ${architecture}`);
  }
  return libraries.map((library) => {
    const { name, version, license } = library;
    const purl = purlOf(library, `arch=${DEBIAN[architecture]}&distro=${debian.release}`);
    return {
      type: "library",
      "bom-ref": purl,
      name,
      version,
      scope: "required",
      licenses: [{ license: { id: license } }],
      purl,
    };
  });
}

function purlOf({ name, version, debian, github, pypi }, ofDebian) {
  if (debian !== undefined) {
    return `pkg:deb/debian/${debian}@${encodeURIComponent(version)}?${ofDebian}&upstream=${name}`;
  }
  return github === undefined ? `pkg:pypi/${pypi}@${version}` : `pkg:github/${github}@v${version}`;
}

/** Returns the document that lies in the wheel for an architecture. */
function wheelSbom({ carried, architecture, version, time }) {
  const components = carriedComponents(carried, architecture);
  const root = { type: "library", name: "nats-pserver", version };
  const ref = `pkg:pypi/nats-pserver@${version}`;
  return documentOf({
    time,
    component: { ...root, "bom-ref": ref, purl: ref },
    components,
    dependencies: [{ ref, dependsOn: components.map((each) => each["bom-ref"]) }],
  });
}

/**
 * Returns the document of a release. `npm` is what `npm sbom` prints; `direct` are the packages, as `name@version`,
 * that ours depends on, `bundled` those that the tarball contains. `files` are the tarball and the wheels: `name` and `sha256` of each.
 * @throws if a bundled package is not locked, or a file is neither the tarball nor a wheel.
 */
function releaseSbom({ carried, npm, direct, bundled, files, version, time }) {
  const packages = npmComponents(npm, bundled);
  const artifacts = files.map((file) => artifactOf(file, carried, npm, version));
  const libraries = artifacts.flatMap(({ libraries }) => libraries);
  const unique = new Map([...packages, ...libraries].map((each) => [each["bom-ref"], each]));
  const edges = npm.dependencies.filter(({ ref }) => unique.has(ref));
  const root = { type: "application", "bom-ref": "release", name: "nats-pserver", version };
  return documentOf({
    time,
    component: root,
    components: [...artifacts.map(({ component }) => component), ...unique.values()],
    dependencies: [
      { ref: "release", dependsOn: artifacts.map(({ component }) => component["bom-ref"]) },
      ...artifacts.map(({ component, libraries, isTarball }) => ({
        ref: component["bom-ref"],
        dependsOn: isTarball
          ? [...direct, ...bundled]
          : libraries.map((library) => library["bom-ref"]),
      })),
      ...edges.map(({ ref, dependsOn }) => ({
        ref,
        dependsOn: dependsOn.filter((each) => unique.has(each)),
      })),
    ],
  });
}

/** The packages that users get, and those that they get as a part of ours. */
function npmComponents(npm, bundled) {
  const locked = new Map(npm.components.map((each) => [each["bom-ref"], each]));
  const inside = bundled.map((ref) => {
    const { properties: _, ...component } = locked.get(ref) ?? {};
    if (component.name === undefined) {
      throw new Error(`expected ${ref}, which the package contains, in package-lock.json`);
    }
    const properties = [{ name: "cdx:npm:package:bundled", value: "true" }];
    return { ...component, scope: "required", properties };
  });
  // `npm sbom --omit=dev` also leaves out what both users and development need.
  const isForUsers = ({ properties }) => !properties.some(({ name }) => name === DEVELOPMENT);
  return [...npm.components.filter(isForUsers), ...inside];
}

function artifactOf({ name, sha256 }, carried, npm, version) {
  const common = { version, hashes: [{ alg: "SHA-256", content: sha256 }] };
  if (name.endsWith(".tgz")) {
    // npm calls it by the name of the directory.
    const component = { ...npm.metadata.component, name: "nats-pserver", ...common };
    return { isTarball: true, libraries: [], component };
  }
  const [, architecture] = /_(x86_64|aarch64)\.whl$/.exec(name) ?? [];
  if (architecture === undefined) {
    throw new Error(`expected the tarball, or a wheel for a known architecture; received ${name}`);
  }
  const purl = `pkg:pypi/nats-pserver@${version}?file_name=${name}`;
  return {
    isTarball: false,
    libraries: carriedComponents(carried, architecture),
    component: { type: "library", "bom-ref": purl, name: "nats-pserver", ...common, purl },
  };
}

function documentOf({ time, component, components, dependencies }) {
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { timestamp: time, component },
    components,
    dependencies,
  };
}

/** From the lock file: what is installed also depends on the machine. */
async function npmSbom() {
  const args = ["sbom", "--sbom-format=cyclonedx", "--package-lock-only"];
  const most = { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 };
  const { stdout } = await promisify(execFile)("npm", args, most);
  return JSON.parse(stdout);
}

async function readJson(path) {
  return JSON.parse(await readFile(join(ROOT, path), "utf8"));
}

async function filesIn(directory) {
  const names = (await readdir(directory)).filter((name) => /\.(?:tgz|whl)$/.test(name)).sort();
  return await Promise.all(
    names.map(async (name) => {
      const hash = createHash("sha256").update(await readFile(join(directory, name)));
      return { name, sha256: hash.digest("hex") };
    }),
  );
}

async function main([kind, argument]) {
  const epoch = Number(process.env.SOURCE_DATE_EPOCH);
  if (argument === undefined || !["wheel", "release"].includes(kind) || !Number.isInteger(epoch)) {
    throw new Error(
      `usage: SOURCE_DATE_EPOCH=SECONDS node ${basename(import.meta.filename)} wheel ARCHITECTURE | release DIRECTORY`,
    );
  }
  const { version, dependencies } = await readJson("package.json");
  const common = {
    carried: await readJson("scripts/release/carried-libraries.json"),
    version,
    time: new Date(epoch * 1000).toISOString(),
  };
  if (kind === "wheel") return wheelSbom({ ...common, architecture: argument });
  const texts = await Promise.all(BUNDLED.map((path) => readFile(join(ROOT, path), "utf8")));
  return releaseSbom({
    ...common,
    npm: await npmSbom(),
    direct: Object.entries(dependencies).map(([name, exact]) => `${name}@${exact}`),
    bundled: texts.flatMap(packagesIn),
    files: await filesIn(argument),
  });
}

if (import.meta.filename === process.argv[1]) {
  process.stdout.write(`${JSON.stringify(await main(process.argv.slice(2)), null, 2)}\n`);
}
