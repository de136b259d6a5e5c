import type { Reporter, TestModule } from "vitest/node";

/** Characters of a line; an error may hold the output of a program. */
const LINE_MAX = 500;

/** Ends the output with a line for each test that failed, and why: whoever sees only its end knows them all. */
export class FailureList implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      const place = [module.project.name, module.relativeModuleId].filter(Boolean).join(" ");
      const failed = [...module.children.allTests("failed")].map((test) => {
        const reasons = (test.result().errors ?? []).map(({ message }) => message);
        return `${test.fullName}: ${reasons.join(" / ")}`;
      });
      const broken = module.errors().map(({ message }) => message);
      for (const what of [...failed, ...broken]) {
        const line = `failed: ${place} > ${what}`.replaceAll(/\s+/g, " ").slice(0, LINE_MAX);
        process.stderr.write(`${line}\n`);
      }
    }
  }
}
