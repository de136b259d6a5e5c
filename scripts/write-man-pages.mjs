// Writes the man pages of pserver and legion, and a page of all commands in Markdown, from the help of the
// commands, as `--help` prints it. Run it on the modules that tsc has compiled:
//
//   node scripts/write-man-pages.mjs MODULES DIRECTORY

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { PassThrough } from "node:stream";
import { pathToFileURL } from "node:url";

const WIDTH = 76;

const [modules, directory] = process.argv.slice(2);
if (directory === undefined) {
  throw new Error("usage: node scripts/write-man-pages.mjs MODULES DIRECTORY");
}
const { createProgram } = await load("cli/program.js");
const { legionCommand } = await load("cli/run/run-legion.js");
const { version } = JSON.parse(await readFile("package.json", "utf8"));

async function load(file) {
  return await import(pathToFileURL(resolve(modules, file)).href);
}

/** Returns what `--help` of a command prints. */
function helpOf(command) {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text.trimEnd();
}

/** Escapes text so that roff prints it unchanged. */
function plain(text) {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^(?=[.'])/gm, "\\&");
}

function verbatim(text) {
  return `.nf\n${plain(text)}\n.fi`;
}

function commandsOf(program) {
  const commands = program.createHelp().visibleCommands(program);
  return commands.filter((each) => each.name() !== "help");
}

/** Writes a page: the help of the program, and a section for each of its commands. */
function page(program, seeAlso) {
  const name = program.name();
  const commands = commandsOf(program);
  return [
    `.TH ${name.toUpperCase()} 1 "" "nats\\-pserver ${version}"`,
    ".SH NAME",
    `${name} \\- ${plain(program.description().replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    verbatim(`${name} ${program.usage()}`),
    ".SH DESCRIPTION",
    verbatim(helpOf(program)),
    ...(commands.length === 0 ? [] : [".SH COMMANDS"]),
    ...commands.flatMap((each) => [`.SS "${name} ${each.name()}"`, verbatim(helpOf(each))]),
    ".SH SEE ALSO",
    `.BR ${seeAlso} (1),\nthe documents in the directory docs of the package`,
    "",
  ].join("\n");
}

/** Writes all commands of the programs, each with its help. */
function markdown(programs) {
  const section = (title, command) => `## ${title}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`;
  return [
    "---\ntitle: Commands\n---\n",
    ...programs.flatMap((program) => [
      section(program.name(), program),
      ...commandsOf(program).map((each) => section(`${program.name()} ${each.name()}`, each)),
    ]),
  ].join("\n");
}

const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
const { signal } = new AbortController();
const context = { stdin, stdout, stderr, environment: {}, signal, setExitCode() {} };
const pserver = createProgram(context, { json: false, paint: (_style, text) => text });
const legion = legionCommand(async () => {});

await mkdir(directory, { recursive: true });
await writeFile(join(directory, "pserver.1"), page(pserver, "legion"));
await writeFile(join(directory, "legion.1"), page(legion, "pserver"));
await writeFile(join(directory, "commands.md"), markdown([pserver, legion]));
