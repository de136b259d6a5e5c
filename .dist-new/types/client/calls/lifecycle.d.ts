import { type ParameterConfigInput } from "../../protocol/config/index.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import { type TensorLike } from "../../protocol/tensor.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Session } from "../io/session.ts";
import type { UpdateSender } from "../io/update-sender.ts";
import { type TensorRecord } from "../push/block-updates.ts";
import { Deadline } from "./calls.ts";
import type { Parameters } from "./parameters.ts";
/** Dependencies of Lifecycle. */
export interface LifecycleDeps {
    readonly session: Session;
    readonly sender: UpdateSender;
    readonly parameters: Parameters;
    readonly positions: Positions;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    /** The largest message the broker takes. */
    readonly payloadBytesMax: () => number;
}
/**
 * Initializes the job if this trainer is selected, and single parameters that nobody else has initialized.
 */
export declare class Lifecycle {
    #private;
    constructor(options: LifecycleDeps);
    /** Asks whether this trainer is selected; see `Client.beginInit`. */
    begin(wait: boolean, deadline: Deadline): Promise<boolean>;
    /** Declares a parameter and stores its values; see `Client.initParam`. */
    initParam(name: string, given: TensorLike, config: ParameterConfigInput | undefined, deadline: Deadline): Promise<void>;
    /** Declares several parameters and stores their values; see `Client.initParams`. */
    initParams(tensors: TensorRecord, configOf: (name: string) => ParameterConfigInput | undefined, deadline: Deadline): Promise<void>;
    /** Ends the initialization; see `Client.finishInit`. */
    finish(deadline: Deadline): Promise<void>;
    /** Gives the initialization up; see `Client.abortInit`. */
    abort(deadline: Deadline): Promise<void>;
    /** Initializes one parameter unless that is done; see `Client.createIfNotAlreadyCreated`. */
    create(name: string, given: TensorLike, config: ParameterConfigInput | undefined, deadline: Deadline): Promise<void>;
}
//# sourceMappingURL=lifecycle.d.ts.map