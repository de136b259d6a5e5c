// Proves that no parameter's name becomes a path that leads out when somebody unpacks a model: archives
// of hostile names are written, and every member of the files is looked at as it stands there; that names
// others rely on stay as they are, bit for bit; and that no two names meet.
import { readFile, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ModelFile } from "../../src/model-files/model-file.ts";
import { memberName } from "../../src/model-files/model-path.ts";
import { readTar } from "../../src/model-files/tar.ts";
import { readZip } from "../../src/model-files/zip-reader.ts";
import { codeOf, load, sampleTensor, save, withDirectory } from "./sample-model.ts";

const HOSTILE = [
  ...["../x", "../../etc/cron.d/x", "/etc/passwd", "..", ".", "a/../../b", "a//b", "a/", "./a"],
  ...["a\\..\\b", "C:/windows/x", "nul\0end", "esc\u001b[2J", "line\nbreak", "\u009b2J"],
];
const PLAIN = [
  ...[
    "___fc_layer_0__.w0",
    "emb:sparse",
    "dense/kernel:0",
    "w:0",
    "layer.0.weight",
    "größe 層",
    "-r",
  ],
  ...["...", "..x", "x..", "a=b", "a=2e", "~/x", "w", "C:x"],
];

test.each(HOSTILE)("%j is escaped", (name) => {
  const { name: member, trueName } = memberName(name);
  expect(member).toMatch(/^[A-Za-z0-9_=-]+$/);
  expect(trueName).toBe(name);
});

test.each(PLAIN)("%j stays as it is", (name) => {
  expect(memberName(name)).toEqual({ name });
});

test("no two names become one member", () => {
  const piece = fc.constantFrom("..", "/", "=2E", "=3D", "=", "a", ".", "\\", "\0");
  const names = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(fc.uniqueArray(names, { minLength: 2, maxLength: 20 }), (distinct) => {
      expect(new Set(distinct.map((name) => memberName(name).name)).size).toBe(distinct.length);
    }),
  );
});

describe.each(["m.tar", "m.npz"])("%s", (path) => {
  const tensors = [...HOSTILE, ...PLAIN].map((name) => sampleTensor(name, "float32", [2]));

  test("unpacks below its directory, and gives the true names back", async () => {
    await withDirectory(async (directory) => {
      const { file } = await save(directory, path, tensors);
      const opened = await ModelFile.open(file);
      const { entries } = await (path === "m.tar" ? readTar(opened, []) : readZip(opened));
      await opened.close();
      for (const { name: member } of entries) {
        expect(
          member.split("/").filter((part) => /^\.{0,2}$/.test(part)),
          member,
        ).toEqual([]);
        expect(member).not.toMatch(/[\\\p{Cc}]/u);
      }
      const { tensors: found } = await load(file);
      expect([...found.keys()].sort()).toEqual([...HOSTILE, ...PLAIN].sort());
    });
  });

  test("with a true name that its member was not made of is refused", async () => {
    await withDirectory(async (directory) => {
      const { file } = await save(directory, path, [sampleTensor("../x", "float32", [2])]);
      const bytes = await readFile(file);
      const at = bytes.indexOf('PSERVER.name="../x"');
      bytes.write("../y", at + 'PSERVER.name="'.length, "latin1");
      await writeFile(file, bytes);
      expect(await codeOf(load(file))).toBe("BAD_FILE");
    });
  });
});
