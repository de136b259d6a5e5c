import { addHelp, openLog } from "../context.js";
import { addJobOption, addOutputOptions } from "../options/connection-options.js";
import { addHostOptions } from "../options/host-options.js";
import { wholeNumber } from "../options/parse-values.js";
import { formatCount } from "../output/amounts.js";
import { untilAborted } from "../signals.js";
import { addNoTokenOption } from "../up/broker-token.js";
import { startLocalServer } from "../up/local-server.js";
/**
 * Runs a broker and hosts until it is interrupted; then stops the hosts and last the broker.
 * @throws the error that kept it from starting, or why no broker or no host is left; ABORTED if it is
 * interrupted before it serves.
 */
async function runUp(context, output, flags) {
    const server = await startLocalServer(context, output, flags);
    try {
        if (output.json)
            output.value({ ready: true, ...server.ready });
        else
            output.lines(describeReady(server.ready, output.paint));
        const failed = await Promise.race([untilAborted(context.signal), server.failed]);
        if (failed !== undefined)
            throw failed;
        output.message("stopping; Ctrl-C again stops at once");
    }
    finally {
        await server.stop();
    }
}
/** Describes for people what to connect to. */
function describeReady(ready, paint) {
    const row = (title, text) => `  ${paint("faint", title.padEnd(8))} ${text}`;
    return [
        `${paint("ok", "pserver is up")}: job ${paint("strong", ready.job)}`,
        row("broker", `${paint("strong", ready.url)}  (nats-server ${ready.broker.version})`),
        row("hosts", `${formatCount(ready.hosts.length, "host")}: ${ready.hosts.join(", ")}`),
        row("store", ready.store),
        row("models", ready.modelDirectory),
        row("token", describeToken(ready)),
        row("look", `pserver status --url ${ready.url}${ready.job === "default" ? "" : ` --job ${ready.job}`}`),
        "Ctrl-C stops it; started again on the same store it goes on where it was.",
    ];
}
function describeToken({ tokenFile }) {
    if (tokenFile === undefined)
        return "none: every user of this machine may change the model";
    return `in ${tokenFile}; programs of this user find it by themselves`;
}
const PORT_DEFAULT = 4222;
const HOSTS_MAX = 64;
/** Adds the command `pserver up`, which runs a broker and hosts on this machine until Ctrl-C. */
export function registerUp(program, context) {
    const command = program
        .command("up")
        .summary("start a broker and hosts on this machine")
        .description("start a broker and one or more hosts on this machine, until Ctrl-C")
        .option("--port <n>", "port of the broker; 0 takes any free one", wholeNumber(0, 65_535), PORT_DEFAULT)
        .option("--store <dir>", "directory of all data", ".pserver")
        .option("--hosts <n>", "number of hosts; the first runs in this process, the others in their own", wholeNumber(1, HOSTS_MAX), 1)
        .option("--durable", "acknowledged updates also survive a power loss; slower");
    addNoTokenOption(command);
    addOutputOptions(addHostOptions(addJobOption(command), "STORE/models")).action((flags) => runUp(context, openLog(context, flags), flags));
    addHelp(command, {
        "When it ends": [
            "  Ctrl-C stops the hosts, then the broker, and exits with 0, or with 130 before it serves;",
            "  a second Ctrl-C stops at once, with 130. With --journal memory the hosts store everything",
            "  first, so that it is there when they are started again. A broker or host that dies is",
            "  started again, up to five times in a row; meanwhile the other hosts take its shards.",
            "  Without any host left it exits.",
        ],
        "With --json": [
            '  One line once it serves: {"ready":true,"url","job","hosts","store",',
            '  "modelDirectory","broker":{"pid","version"},"tokenFile"}, without tokenFile if clients need none.',
        ],
        Examples: [
            "  pserver up",
            "  pserver up --job mnist --port 0 --store /data/mnist --hosts 3 --json",
            "  pserver up --durable --shards 32",
            "  pserver up --job mnist --sync sync --trainers 4 --backups 1",
        ],
    });
}
//# sourceMappingURL=up.js.map