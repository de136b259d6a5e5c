// Proves that a path given by a user cannot leave the model directory: random paths are resolved in
// a real directory with symbolic links inside and outside of it.
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { relativeError, resolveModelPath } from "../../src/model-files/model-path.ts";
import { PserverError } from "../../src/protocol/errors.ts";
import { codeOf, withDirectory } from "./sample-model.ts";

/** `root` is the model directory; `root/out` and `root/up` lead out of it, `root/loop` nowhere. */
async function withRoot(use: (root: string, outside: string) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    const root = join(directory, "root");
    const outside = join(directory, "outside");
    await mkdir(join(root, "sub"), { recursive: true });
    await mkdir(outside);
    await writeFile(join(root, "file"), "x");
    await symlink(outside, join(root, "out"));
    await symlink(join("..", "..", "outside"), join(root, "sub", "up"));
    await symlink("sub", join(root, "inner"));
    await symlink(".", join(root, "self"));
    await symlink("loop", join(root, "loop"));
    await symlink(join(outside, "absent"), join(root, "dangling"));
    await use(root, outside);
  });
}

test("paths inside are resolved, existing or not, through links that stay inside", async () => {
  await withRoot(async (root) => {
    expect(await resolveModelPath(root, "m.npz")).toBe(join(root, "m.npz"));
    expect(await resolveModelPath(root, "./a//b/m")).toBe(join(root, "a", "b", "m"));
    expect(await resolveModelPath(root, "inner/new/m")).toBe(join(root, "sub", "new", "m"));
    expect(await resolveModelPath(root, "self/inner")).toBe(join(root, "sub"));
    expect(await resolveModelPath(join(root, "inner"), "m")).toBe(join(root, "sub", "m"));
    expect(await resolveModelPath(root, "...")).toBe(join(root, "..."));
    expect(await resolveModelPath(root, "größe 1/層~.npz")).toBe(join(root, "größe 1", "層~.npz"));
    const [deep, long] = [`${"d/".repeat(31)}m`, "x".repeat(1024)];
    expect(await resolveModelPath(root, deep)).toBe(join(root, deep));
    expect(await resolveModelPath(root, join("d", long.slice(2)))).toBe(
      join(root, "d", long.slice(2)),
    );
  });
});

test.each([
  "",
  ".",
  "/",
  "/etc/passwd",
  "..",
  "../m",
  "a/../../m",
  "a/..",
  "sub/../m",
  "a\0b",
  "a\nb",
  "\x1b[31mred.npz",
  "a\u0085b",
  "a\u202egpj.npz",
  "a\u2028b",
  "~",
  "~/m.npz",
  "~root/m.npz",
  "a/~b",
  "a\\b",
  "..\\m",
  "out",
  "out/m",
  "out/new/m",
  "sub/up",
  "sub/up/m",
  "self",
  "loop",
  "loop/m",
  "dangling",
  "dangling/m",
  "file/m",
  "inner/../m",
  "x".repeat(1025),
  "ü".repeat(513),
  `${"d/".repeat(32)}m`,
  "\ud800",
])("%j is refused", async (path) => {
  await withRoot(async (root) => {
    const resolved = resolveModelPath(root, path);
    expect(await codeOf(resolved)).toBe("BAD_PATH");
    await expect(resolved).rejects.toThrow(/expected .*; received/s);
  });
});

test("no path made of hostile parts leads out", async () => {
  const part = fc.constantFrom(
    "..",
    ".",
    "",
    "a",
    "sub",
    "up",
    "out",
    "inner",
    "self",
    "loop",
    "m.npz",
    "\0",
  );
  await withRoot(async (root) => {
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 6 }), async (parts) => {
        const resolved = resolveModelPath(root, parts.join("/"));
        const code = await codeOf(resolved);
        if (code === "none") expect((await resolved).startsWith(root + sep)).toBe(true);
        else expect(code).toBe("BAD_PATH");
      }),
      { numRuns: 300 },
    );
  });
});

test("a model directory that is not there is an IO error", async () => {
  await withDirectory(async (directory) => {
    expect(await codeOf(resolveModelPath(join(directory, "absent"), "m"))).toBe("IO");
  });
});

test("an error is told with paths relative to the model directory", async () => {
  await withRoot(async (root) => {
    const file = join(root, "sub", "m.npz");
    const error = new PserverError("IO", `cannot open ${file} in ${root}`, { path: file, n: 1 });
    expect(relativeError(error, root)).toMatchObject({
      code: "IO",
      message: "cannot open sub/m.npz in .",
      details: { path: "sub/m.npz", n: 1 },
    });
    // Paths in errors are real ones, whatever the directory is called.
    expect(relativeError(error, join(root, "self")).message).toBe("cannot open sub/m.npz in .");
  });
});
