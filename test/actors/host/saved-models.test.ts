// Proves that the models that trainers save on a host's disk are bounded, for each trainer and for the job, in number
// and bytes; that a later host knows of them; and that what is replaced, removed or failed makes room.
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SaveQuotas } from "../../../src/actors/host/save-quotas.ts";
import { SavedModels } from "../../../src/actors/host/saved-models.ts";

/** What one small model counts: its bytes, and those of a file. */
const BYTES = 100 + 4096;

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-saves-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Saves a model of 100 bytes, by a host that has just started. */
async function save(trainer: string, path: string, quotas: SaveQuotas): Promise<void> {
  const room = await host(quotas).reserve(trainer, { path, bytes: 100, files: 1 });
  await mkdir(dirname(join(directory, path)), { recursive: true });
  await writeFile(join(directory, path), Buffer.alloc(100));
  await room.saved(100);
}

function host(quotas: SaveQuotas): SavedModels {
  return new SavedModels({ directory, job: "j", quotas });
}

const quota = (text: string): object => ({
  code: "QUOTA",
  message: expect.stringContaining(text),
});

describe("a trainer", () => {
  test("may save as many models as its quota says, also through a host that has just started", async () => {
    const quotas = { trainerSavesMax: 2 };
    await save("a", "one.npz", quotas);
    await save("a", "runs/two.npz", quotas);
    const refusal = save("a", "three.npz", quotas);
    await expect(refusal).rejects.toMatchObject(
      quota('trainer "a": expected at most 2 saved models'),
    );
    await expect(refusal).rejects.toMatchObject(quota("there are 3"));
    await expect(refusal).rejects.toMatchObject(quota("--trainer-quota-saves"));
    await save("b", "three.npz", quotas);
    await save("a", "./one.npz", quotas);
  });

  test("may save as many bytes as its quota says", async () => {
    const quotas = { trainerSaveBytesMax: 2 * BYTES };
    await save("a", "one.npz", quotas);
    const large = host(quotas).reserve("a", { path: "two.npz", bytes: 101, files: 1 });
    await expect(large).rejects.toMatchObject(quota("--trainer-quota-save-bytes"));
    // Many small files fill a disk, too.
    const many = host(quotas).reserve("a", { path: "two", bytes: 10, files: 2 });
    await expect(many).rejects.toMatchObject(quota("--trainer-quota-save-bytes"));
    await save("a", "two.npz", quotas);
  });

  test("has room again for what was removed, replaced by another, or not written", async () => {
    const quotas = { trainerSavesMax: 1 };
    await save("a", "one.npz", quotas);
    await rm(join(directory, "one.npz"));
    const [record = ""] = await readdir(join(directory, ".pserver-saves/j"));
    // A model that is not there might still be written, but not for days.
    await utimes(join(directory, ".pserver-saves/j", record), 0, 0);
    await save("a", "two.npz", quotas);
    await save("b", "two.npz", quotas);
    const room = await host(quotas).reserve("a", { path: "three.npz", bytes: 1, files: 1 });
    await expect(save("a", "four.npz", quotas)).rejects.toMatchObject({ code: "QUOTA" });
    await room.failed();
    await save("a", "four.npz", quotas);
  });

  test("whose save fails keeps what it replaces, and so does who had saved that", async () => {
    const quotas = { trainerSavesMax: 1 };
    await save("a", "one.npz", quotas);
    await (await host(quotas).reserve("b", { path: "one.npz", bytes: 1, files: 1 })).failed();
    await expect(save("a", "two.npz", quotas)).rejects.toMatchObject({ code: "QUOTA" });
    await save("b", "two.npz", quotas);
  });

  test("by default may have a part of what the job may", async () => {
    const quotas = { savesMax: 1 };
    await save("a", "one.npz", quotas);
    await expect(save("b", "two.npz", quotas)).rejects.toMatchObject(quota("--quota-saves"));
    const beyond = { path: "two.npz", bytes: Number.MAX_SAFE_INTEGER / 2, files: 1 };
    await expect(host({}).reserve("b", beyond)).rejects.toMatchObject(quota("--quota-save-bytes"));
    const own = host({ saveBytesMax: Number.MAX_SAFE_INTEGER }).reserve("b", beyond);
    await expect(own).rejects.toMatchObject(quota("--trainer-quota-save-bytes"));
  });
});

describe("the job", () => {
  test("may save as many models and bytes as its quotas say, of all trainers together", async () => {
    const quotas = { savesMax: 2, saveBytesMax: 2 * BYTES };
    await save("a", "one.npz", quotas);
    await save("b", "two.npz", quotas);
    const third = save("c", "three.npz", quotas);
    await expect(third).rejects.toMatchObject(quota("job j: expected at most 2 saved models"));
    const more = host({ saveBytesMax: 2 * BYTES }).reserve("a", {
      ...{ path: "one.npz", bytes: 101, files: 1 },
    });
    await expect(more).rejects.toMatchObject(quota("--quota-save-bytes"));
  });
});

test("nobody can save over the records, and one that is damaged counts for nobody", async () => {
  const quotas = { trainerSavesMax: 1 };
  await save("a", "one.npz", quotas);
  const over = host(quotas).reserve("b", { path: ".pserver-saves/j/x.npz", bytes: 1, files: 1 });
  await expect(over).rejects.toMatchObject({ code: "BAD_PATH" });
  await writeFile(join(directory, ".pserver-saves/j/other.json"), "{");
  await expect(save("a", "two.npz", quotas)).rejects.toMatchObject({ code: "QUOTA" });
  const [record = ""] = await readdir(join(directory, ".pserver-saves/j"));
  await writeFile(join(directory, ".pserver-saves/j", record), '{"format":1,"path":7}');
  await save("a", "two.npz", quotas);
});
