import { addConnectionOptions, addJobOption, addOutputOptions, } from "./connection-options.js";
/** Adds the flags of a command that reads the history of a job. */
export function addHistoryOptions(command) {
    return addOutputOptions(addJobOption(addConnectionOptions(command)))
        .option("--archive <path>", "read an archive (see pserver archive) and the broker as one")
        .option("--no-broker", "with --archive: read the archive alone")
        .option("--from-file <file>", "read a file of pserver record, as an archive without the broker");
}
/** Adds `--param`, which may be repeated. */
export function addParamOption(command) {
    return command.option("--param <name>", "only this parameter; may be repeated", (name, before = []) => [...before, name]);
}
/** Lines of help about the points that commands take. */
export const POINT_HELP = [
    "  now, start (of what is kept), a time (2026-11-23T04:12:07Z, 2026-11-23 04:12, 10m ago), a position",
    "  (SHARD:SEQ, or SHARD:SEQ@GENERATION), step:N, an update (TRAINER/SESSION:NUMBER, with @SHARD if",
    "  several shards have that number) or mark:NAME. Shards have no common order: a time cuts each of",
    "  them after what it had stored by then; a position or an update cuts its own shard right after it,",
    "  and the others at its time. The command says which cut it understood.",
];
/** Lines of help about who may read a history. */
export const HISTORY_PERMISSIONS = [
    "  The user needs the JetStream API, like the user that hosts store with. No host has to run.",
];
//# sourceMappingURL=history-options.js.map