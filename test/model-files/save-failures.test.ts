// Proves that a save is whole or has not happened: whatever fails, at whatever chunk, the model that
// was there stays as it was, and no temporary file is left. And that nothing but a saved model is
// ever replaced.
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { TensorHeader } from "../../src/model-files/index.ts";
import { type SaveModelOptions, saveModel } from "../../src/model-files/save-model.ts";
import { fileError } from "../../src/system/file-errors.ts";
import { ALL_PATHS, codeOf, load, sampleTensor, save, withDirectory } from "./sample-model.ts";

const OLD = [sampleTensor("old", "float32", [4])];
const W: TensorHeader = { name: "w", dtype: "float32", shape: [4] };

/** Saves over an old model, must fail, and returns the code. */
async function failOver(
  directory: string,
  path: string,
  options: Pick<SaveModelOptions, "chunks"> & Partial<SaveModelOptions>,
): Promise<string> {
  const { file } = await save(directory, path, OLD);
  const code = await codeOf(saveModel({ directory, path, tensors: [W], ...options }));
  expect([...(await load(file)).tensors.keys()]).toEqual(["old"]);
  expect(await readdir(directory)).toEqual([path]);
  return code;
}

describe.each(ALL_PATHS)("%s", (path) => {
  test("stays when chunks are short, long or fail", async () => {
    await withDirectory(async (directory) => {
      const short = async function* () {
        yield new Uint8Array(15);
      };
      const long = async function* () {
        yield new Uint8Array(16);
        yield new Uint8Array(1);
      };
      const failing = async function* () {
        yield new Uint8Array(8);
        throw new TypeError("the source failed");
      };
      expect(await failOver(directory, path, { chunks: short })).toBe("BAD_LENGTH");
      expect(await failOver(directory, path, { chunks: long })).toBe("BAD_LENGTH");
      expect(await failOver(directory, path, { chunks: failing })).toBe("INTERNAL");
    });
  });

  test("stays when the save is aborted, though the source hangs", async () => {
    await withDirectory(async (directory) => {
      const controller = new AbortController();
      const hanging = async function* () {
        yield new Uint8Array(4);
        queueMicrotask(() => controller.abort(new Error("enough")));
        await new Promise(() => undefined);
      };
      const { signal } = controller;
      expect(await failOver(directory, path, { chunks: hanging, signal })).toBe("ABORTED");
      expect(await failOver(directory, path, { chunks: hanging, signal })).toBe("ABORTED");
    });
  });

  test("is replaced by a save that succeeds, and parents are made", async () => {
    await withDirectory(async (directory) => {
      const nested = `a/b/${path}`;
      await save(directory, nested, OLD);
      const { file } = await save(directory, nested, [sampleTensor("new", "int64", [2])]);
      expect([...(await load(file)).tensors.keys()]).toEqual(["new"]);
      expect(await readdir(join(directory, "a", "b"))).toEqual([path]);
    });
  });
});

test("a directory that is not a saved model is never replaced", async () => {
  await withDirectory(async (directory) => {
    const precious = join(directory, "models");
    await mkdir(precious);
    await writeFile(join(precious, "thesis.txt"), "x");
    expect(await codeOf(save(directory, "models", OLD))).toBe("BAD_PATH");
    await save(directory, "saved", OLD);
    await writeFile(join(directory, "saved", "notes.txt"), "x");
    await expect(save(directory, "saved", OLD)).rejects.toThrow("notes.txt");
    await mkdir(join(directory, "m.npz"));
    expect(await codeOf(save(directory, "m.npz", OLD))).toBe("BAD_PATH");
    await writeFile(join(directory, "file"), "x");
    expect(await codeOf(save(directory, "file", OLD))).toBe("BAD_PATH");
    expect(await readFile(join(precious, "thesis.txt"), "utf8")).toBe("x");
    expect(await readFile(join(directory, "file"), "utf8")).toBe("x");
    expect((await readdir(directory)).sort()).toEqual(["file", "m.npz", "models", "saved"]);
  });
});

test("an empty directory is taken; a link to a file inside stays a link", async () => {
  await withDirectory(async (directory) => {
    await mkdir(join(directory, "empty"));
    const { file } = await save(directory, "empty", OLD);
    expect([...(await load(file)).tensors.keys()]).toEqual(["old"]);
    await save(directory, "real.npz", OLD);
    await symlink("real.npz", join(directory, "latest.npz"));
    const saved = await save(directory, "latest.npz", [sampleTensor("new", "int32", [1])]);
    expect(saved.file).toBe(join(directory, "real.npz"));
    expect([...(await load(join(directory, "latest.npz"))).tensors.keys()]).toEqual(["new"]);
  });
});

test("metadata must be text, and not too much of it", async () => {
  await withDirectory(async (directory) => {
    const forged: Record<string, string> = JSON.parse('{"k": 1}');
    expect(await codeOf(save(directory, "m.npz", OLD, forged))).toBe("BAD_VALUE");
    expect(await codeOf(save(directory, "m.npz", OLD, { k: "\ud800" }))).toBe("BAD_VALUE");
    expect(await codeOf(save(directory, "m.npz", OLD, { k: "x".repeat(70_000) }))).toBe(
      "TOO_LARGE",
    );
    expect(await readdir(directory)).toEqual([]);
  });
});

test("errors of the operating system become ours, with the cause", () => {
  for (const errno of ["ENOSPC", "EDQUOT"]) {
    const cause = Object.assign(new Error(`${errno}: no space, write`), { code: errno });
    const error = fileError("write", "models/m.npz", cause);
    expect(error.code).toBe("DISK_FULL");
    expect(error.message).toBe(`cannot write models/m.npz: ${errno}: no space`);
    expect(error.cause).toBe(cause);
  }
  expect(fileError("open", "m", Object.assign(new Error("x"), { code: "EACCES" })).code).toBe("IO");
});

const failing = async function* (): AsyncGenerator<Uint8Array, void> {
  yield new Uint8Array(8);
  throw new TypeError("the source failed");
};

test("directories that were made for a save that failed are removed, others stay", async () => {
  await withDirectory(async (directory) => {
    await mkdir(join(directory, "mine"));
    for (const path of ["mine/a/b/m.npz", "new/m/", "new/m.tar"]) {
      const saving = saveModel({ directory, path, tensors: [W], chunks: failing });
      expect(await codeOf(saving)).toBe("INTERNAL");
    }
    // No file system takes such a name: the directories before it can be made.
    const long = `p/q/${"n".repeat(256)}/m.npz`;
    expect(await codeOf(save(directory, long, OLD))).toBe("IO");
    expect(await readdir(directory)).toEqual(["mine"]);
    expect(await readdir(join(directory, "mine"))).toEqual([]);
  });
});

test("directories in which somebody else has put something stay", async () => {
  await withDirectory(async (directory) => {
    const chunks = async function* (): AsyncGenerator<Uint8Array, void> {
      yield new Uint8Array(8);
      await writeFile(join(directory, "a", "b", "theirs"), "");
      throw new TypeError("the source failed");
    };
    const saving = saveModel({ directory, path: "a/b/c/m.npz", tensors: [W], chunks });
    expect(await codeOf(saving)).toBe("INTERNAL");
    expect(await readdir(join(directory, "a", "b"))).toEqual(["theirs"]);
  });
});

test.each(ALL_PATHS)("%s can be read by its user alone, whatever was there", async (path) => {
  await withDirectory(async (directory) => {
    const { file } = await save(directory, path, OLD);
    const modes = async (): Promise<number[]> => {
      const names = await readdir(file).catch(() => []);
      const files = [file, ...names.map((name) => join(file, name))];
      return await Promise.all(files.map(async (name) => (await stat(name)).mode & 0o077));
    };
    expect(new Set(await modes())).toEqual(new Set([0]));
    await chmod(file, 0o755);
    await save(directory, path, OLD);
    expect(new Set(await modes())).toEqual(new Set([0]));
  });
});

test("an ending that is no format is refused before anything is written", async () => {
  await withDirectory(async (directory) => {
    for (const path of ["m.safetensor", "m.pt", "a/m.npy", "m.", ".m"]) {
      const saving = save(directory, path, OLD);
      await expect(saving, path).rejects.toMatchObject({
        code: "BAD_PATH",
        message: expect.stringContaining(".safetensors, .npz, .tar, or in / for a directory"),
      });
    }
    for (const path of ["m.h5", "a/M.HDF5"]) {
      await expect(save(directory, path, OLD)).rejects.toMatchObject({
        code: "BAD_PATH",
        message: expect.stringMatching(/has no HDF5; in Python, server_save_to_hdf5 of legion/),
      });
    }
    expect(await readdir(directory)).toEqual([]);
    for (const [path, format] of [
      ["v1.5/", "directory"],
      ["v1.5", "directory"],
      ["m.npz/", "directory"],
      ["plain", "directory"],
      ["M.NPZ", "npz"],
    ] as const) {
      expect(await save(directory, path, OLD), path).toMatchObject({ format });
    }
  });
});
