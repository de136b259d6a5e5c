import { Option } from "commander";
import { defined } from "../../protocol/fields.js";
import { JOB_DEFAULT } from "../../protocol/names.js";
import { parseId, parseJob, parseTimeout } from "./parse-values.js";
/** Adds the flags that say how to reach the broker. */
export function addConnectionOptions(command) {
    return command
        .option("--url <urls>", "the broker, or several with commas (PSERVER_URL, NATS_URL)")
        .option("--user <name>", "user name (NATS_USER)")
        .option("--password <password>", "password (NATS_PASSWORD, which hides it from other users)")
        .option("--token <token>", "token (NATS_TOKEN, which hides it from other users)")
        .option("--creds <file>", "credentials file (NATS_CREDS)")
        .option("--nkey <file>", "file with an nkey seed (NATS_NKEY)")
        .option("--tlscert <file>", "certificate of this client (NATS_CERT)")
        .option("--tlskey <file>", "its private key (NATS_KEY)")
        .option("--tlsca <file>", "certificates to trust (NATS_CA)")
        .option("--context <name>", "a context of the nats command (NATS_CONTEXT)");
}
/** Returns the flags that are given under the names of the client's settings. */
export function toOverrides(flags) {
    const { url, user, password, token, creds, nkey, tlscert, tlskey, tlsca, context } = flags;
    return defined({
        ...{ url, user, password, token, creds, nkey, context },
        ...{ tlsCert: tlscert, tlsKey: tlskey, tlsCa: tlsca },
    });
}
/** Adds `--job`. */
export function addJobOption(command) {
    return command.addOption(new Option("--job <name>", "the job")
        .argParser(parseJob)
        .env("PSERVER_JOB")
        .default(JOB_DEFAULT));
}
/** Adds the flags of a command that works with a job; `timeoutMs` is the default of `--timeout`. */
export function addJobOptions(command, timeoutMs, shown) {
    return addTimeoutOption(addJobOption(addConnectionOptions(command)), timeoutMs, shown);
}
/** Adds `--timeout`, with a default, which help shows as `shown`. */
export function addTimeoutOption(command, timeoutMs, shown = `${timeoutMs / 1000}s`) {
    return command.addOption(new Option("--timeout <duration>", "longest wait for an answer: 500ms, 5s, 2m")
        .argParser(parseTimeout)
        .default(timeoutMs, shown));
}
/** The default of `--timeout` where values are transferred, for help: see {@link givenTimeout}. */
export const WHILE_IN_PROGRESS = "as long as values move";
/**
 * Returns the timeout of a command that transfers values, if its user has given one, for a whole call. Without one a
 * call may last as long as it makes progress, however slow the link is.
 */
export function givenTimeout(command) {
    if (command.getOptionValueSource("timeout") === "default")
        return {};
    return { timeoutMs: command.getOptionValue("timeout") };
}
/** Adds `--trainer`, the id that the broker's permissions may be bound to. */
export function addTrainerOption(command) {
    return command.option("--trainer <id>", "the id to appear under (default: cli-HOST-PID)", parseId);
}
/** Adds the flags for the output of a command. */
export function addOutputOptions(command) {
    return command
        .option("-j, --json", "print data, warnings and errors as JSON, one value a line")
        .option("--no-color", "no colours, as with the variable NO_COLOR");
}
/** Adds the flags of a command that asks hosts; `timeoutMs` is the default of `--timeout`. */
export function addAskingOptions(command, timeoutMs, shown) {
    return addOutputOptions(addTrainerOption(addJobOptions(command, timeoutMs, shown)));
}
/** Adds the credentials of a host's second user, which answers trainers. */
export function addAnswerOptions(command) {
    return command
        .option("--answer-creds <file>", "credentials file of the user that answers trainers")
        .option("--answer-nkey <file>", "file with that user's nkey seed")
        .option("--answer-user <name>", "that user's name (default: one user does everything)")
        .addOption(new Option("--answer-password <password>", "its password, which the variable hides from other users").env("PSERVER_ANSWER_PASSWORD"));
}
/** Returns the connection settings of the user that answers trainers; undefined if none is given. */
export function toAnswerConnection(flags, { servers, tls, timeoutMs }) {
    const { answerCreds, answerNkey, answerUser, answerPassword } = flags;
    if ((answerCreds ?? answerNkey ?? answerUser) === undefined)
        return undefined;
    return {
        servers,
        timeoutMs,
        ...defined({
            tls,
            credsFile: answerCreds,
            nkeyFile: answerNkey,
            user: answerUser,
            password: answerPassword,
        }),
    };
}
//# sourceMappingURL=connection-options.js.map