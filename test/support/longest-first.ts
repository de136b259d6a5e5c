import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from "vitest/node";

/**
 * Begins with the named files, in their order, and leaves the order of the others to Vitest, which on a
 * fresh checkout goes by size. A long file that begins last keeps one worker busy while the others wait.
 */
export function longestFirst(files: readonly string[]): TestSequencerConstructor {
  const rank = ({ moduleId }: TestSpecification): number => {
    const index = files.findIndex((file) => moduleId.endsWith(`/${file}`));
    return index < 0 ? files.length : index;
  };
  return class extends BaseSequencer {
    override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
      const sorted = await super.sort(specifications);
      return sorted.toSorted((a, b) => rank(a) - rank(b));
    }
  };
}
