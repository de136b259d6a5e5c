/** Options of a measurement, or what is printed in place of measuring. */
type Read<Options> = (args: readonly string[]) => Options | { readonly help: string };

/**
 * Reads the options of a program that measures from its command line; undefined if there is nothing to measure: after
 * printing the help that was asked for, or the error, for which the program then ends with 2.
 */
export function optionsOf<Options extends object>(read: Read<Options>): Options | undefined {
  try {
    const options = read(process.argv.slice(2));
    if (!("help" in options)) return options;
    console.log(options.help);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 2;
  }
  return undefined;
}
