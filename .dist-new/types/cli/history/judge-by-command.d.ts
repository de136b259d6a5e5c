import type { Verdict } from "../../history/bisect.ts";
import type { CliContext } from "../context.ts";
/** A model that a command judges. */
export interface JudgedModel {
    /** Writes the model into a file of this name. */
    readonly write: (path: string) => Promise<unknown>;
    /** The cut, written as its positions. */
    readonly point: string;
}
/**
 * Writes a model into a temporary file and runs a command on it: every `{}` of its words, and the variable
 * PSERVER_MODEL, are the file's path; PSERVER_POINT names the point. What it prints goes to the message stream.
 * @throws BAD_VALUE if it ended as no judge does: by a signal, or with a code above 127; IO if it cannot be
 * run; the reason of the context's signal.
 */
export declare function judgeByCommand(context: CliContext, words: readonly string[], { write, point }: JudgedModel): Promise<Verdict>;
//# sourceMappingURL=judge-by-command.d.ts.map