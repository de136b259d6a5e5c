import { spawn } from "node:child_process";
import type { Command } from "commander";
import { OBSERVER_ID } from "../../protocol/permissions.ts";
import { addHelp, type CliContext, openLog } from "../context.ts";
import { withAdmin } from "../open-job.ts";
import {
  addConnectionOptions,
  addJobOption,
  addOutputOptions,
  type ConnectionFlags,
  toOverrides,
} from "../options/connection-options.ts";
import { addPageOptions, type PageFlags, toPageSetting } from "../options/http-options.ts";
import { parseId } from "../options/parse-values.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { untilAborted } from "../signals.ts";

/** Flags of `pserver ui`. */
interface UiFlags extends ConnectionFlags, PageFlags, OutputFlags {
  readonly job: string;
  readonly trainer: string;
  /** False with `--no-open`. */
  readonly open: boolean;
}

/** How long the broker may take to answer before the page is served. */
const CHECK_MS = 5_000;

/** Adds the command `pserver ui`, which shows a job in the browser until Ctrl-C. */
export function registerUi(program: Command, context: CliContext): void {
  const command = program
    .command("ui")
    .summary("show a job in the browser, live and its past")
    .description("serve a page that shows a job, live and its past, and open it in the browser")
    .option("--no-open", "only print the address")
    .option(
      "--trainer <id>",
      "the id to ask hosts under, that the broker's permissions may be bound to",
      parseId,
      OBSERVER_ID,
    );
  addPageOptions(command);
  addOutputOptions(addJobOption(addConnectionOptions(command))).action((flags: UiFlags) =>
    runUi(context, openLog(context, flags), flags),
  );
  addHelp(command, {
    "What it does": [
      "  It serves the page until Ctrl-C, and needs no host on this machine: it reaches the broker and the job as",
      '  other commands do. It is the same page that "pserver up" serves. What it shows, it asks for as "status",',
      '  "log" and "replay" do, in this process: no trainer waits for it. Without --http-token every user of this',
      "  machine can open the address, and the page only shows.",
    ],
    "On another machine": [
      "  Let ssh lead there, with a port that you choose: pserver ui --http 9100, and where the browser is",
      "  ssh -L 9100:127.0.0.1:9100 MACHINE. Then open http://127.0.0.1:9100 there.",
    ],
    Permissions: [
      "  The job as it is needs what an observer may; its past needs the JetStream API, like the user that hosts",
      "  store with; fork and rewind need what the commands need.",
    ],
    "With --json": ['  One line once it serves: {"ready":true,"url","job"}.'],
    Examples: [
      "  pserver ui",
      "  pserver ui --url tls://broker:4222 --nkey observer.nk --tlsca ca.pem",
      "  pserver ui --http-token token.txt          # the page can fork and rewind",
    ],
  });
}

async function runUi(context: CliContext, output: Output, flags: UiFlags): Promise<void> {
  const { environment, signal } = context;
  const { job, trainer } = flags;
  const setting = toPageSetting(flags);
  // A wrong address or a wrong key is told here, as by other commands. A job without hosts has a past, though.
  await withAdmin(context, { ...flags, timeout: CHECK_MS }, async () => undefined);
  const access = { broker: toOverrides(flags), environment, asker: trainer };
  // Loaded here, so that other commands start faster.
  const { servePage } = await import("../serve-http.ts");
  const page = await servePage(setting, job, () => access, output);
  try {
    if (output.json) output.value({ ready: true, url: page.url, job });
    else output.lines([`${output.paint("ok", "job")} ${job} is shown at ${page.url}`]);
    if (flags.open) openInBrowser(context, output, page.url);
    await untilAborted(signal);
  } finally {
    await page.close();
  }
}

/** Opens an address in the user's browser, if there is a display to show it on. */
function openInBrowser({ environment }: CliContext, output: Output, url: string): void {
  const hasDisplay = ["DISPLAY", "WAYLAND_DISPLAY"].some(
    (name) => (environment[name] ?? "") !== "",
  );
  const isMac = process.platform === "darwin";
  if (!isMac && !hasDisplay) {
    output.message("there is no display here: open the address in a browser");
    return;
  }
  const program = isMac ? "open" : "xdg-open";
  // It has its own group: Ctrl-C here closes no browser.
  const child = spawn(program, [url], { stdio: "ignore", detached: true, env: environment });
  const tell = (why: string): void => {
    output.message(`${program} ${why}: open the address in a browser`);
  };
  child.once("error", ({ message }) => tell(`does not run (${message})`));
  child.once("exit", (code) => {
    if (code !== 0 && code !== null) tell(`ended with ${code}`);
  });
  child.unref();
}
