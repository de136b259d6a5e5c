import { type Command, InvalidArgumentError } from "commander";
import type { OpenModel } from "../../model-files/index.ts";
import { badName } from "../../model-files/tensor-headers.ts";
import { mismatch } from "../../protocol/errors.ts";

/** A rule that gives a name to tensors; `*` stands for any text, once on both sides or on none. */
interface Renaming {
  readonly from: string;
  readonly to: string;
}

/** Flags that choose tensors of a file, and rename them. */
export interface NameFlags {
  readonly only?: readonly string[];
  readonly rename?: readonly Renaming[];
}

/** Adds the flags that choose tensors of a file, and rename them. */
export function addNameOptions(command: Command): Command {
  return command
    .option(
      "--only <glob>",
      "only tensors of such names, with * and ?; may be repeated",
      (glob: string, before: readonly string[] = []) => [...before, glob],
    )
    .option(
      "--rename <from=to>",
      "another name for a tensor, or with one * on both sides for several; may be repeated",
      collectRenaming,
    );
}

function collectRenaming(text: string, before: readonly Renaming[] = []): Renaming[] {
  const at = text.indexOf("=");
  const [from, to] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
  const stars = [from, to].map((side) => side.split("*").length - 1);
  if (from === "" || to === "" || stars[0] !== stars[1] || Number(stars[0]) > 1) {
    const expected = "expected FROM=TO, with one * on both sides or none";
    throw new InvalidArgumentError(`${expected}; received ${JSON.stringify(text)}`);
  }
  return [...before, { from, to }];
}

/**
 * Returns the tensors of a model that the flags choose, under their new names, with what optimizers keep of them. A
 * name is chosen first, and then renamed by the first rule that fits.
 * @throws BAD_VALUE for a pattern or a rule that fits no tensor; BAD_NAME if two tensors get one name.
 */
export function chosenTensors(model: OpenModel, { only = [], rename = [] }: NameFlags): OpenModel {
  const all = [...model.tensors.map(({ header }) => header.name), ...model.skipped.map(nameOf)];
  for (const glob of only) requireMatch("--only", glob, all);
  const globs = only.map(matcher);
  const isChosen = (name: string): boolean =>
    globs.length === 0 || globs.some((glob) => glob.test(name));
  const chosen = all.filter(isChosen);
  for (const { from } of rename) requireMatch("--rename", from, chosen);
  const rules = rename.map(({ from, to }) => ({ from: matcher(from), to }));
  const renamed = (name: string): string => {
    for (const { from, to } of rules) {
      const match = from.exec(name);
      if (match !== null) return to.replace("*", () => match[1] ?? "");
    }
    return name;
  };
  const names = new Set<string>();
  for (const name of chosen.map(renamed)) {
    if (names.has(name)) throw badName(name, "--rename: each name once");
    names.add(name);
  }
  const { optimizers } = model;
  const metadata = Object.entries(model.metadata).map(([key, text]) => [
    renamed(key),
    renamed(text),
  ]);
  return {
    ...model,
    tensors: model.tensors
      .filter(({ header }) => isChosen(header.name))
      .map((tensor) => {
        return { ...tensor, header: { ...tensor.header, name: renamed(tensor.header.name) } };
      }),
    skipped: model.skipped
      .filter(({ name }) => isChosen(name))
      .map((tensor) => ({ ...tensor, name: renamed(tensor.name) })),
    metadata: Object.fromEntries(metadata),
    ...(optimizers && {
      optimizers: {
        ...optimizers,
        states: new Map(
          [...optimizers.states]
            .filter(([name]) => isChosen(name))
            .map(([name, state]) => [renamed(name), state]),
        ),
      },
    }),
  };
}

function nameOf({ name }: { readonly name: string }): string {
  return name;
}

/** Returns what matches a whole name; the text in place of a `*` is captured. */
function matcher(glob: string): RegExp {
  const parts = [...glob].map((character) => {
    if (character === "*") return "(.*)";
    return character === "?" ? "." : character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
  });
  return new RegExp(`^${parts.join("")}$`, "su");
}

function requireMatch(flag: string, glob: string, names: readonly string[]): void {
  const matches = matcher(glob);
  if (names.some((name) => matches.test(name))) return;
  throw mismatch("BAD_VALUE", flag, "names of tensors of the file", JSON.stringify(glob));
}
