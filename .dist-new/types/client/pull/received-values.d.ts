import { type Encoding, type TensorData } from "../../protocol/dtypes.ts";
/** The values of several blocks as a message has them: each begins at a multiple of 8 bytes. */
export declare class ReceivedValues {
    #private;
    /** `bytes`: a view of the message. The values are valid until the next message is received. */
    constructor(bytes: Uint8Array);
    /** Copies elements, which begin at byte `at`, to `count` consecutive places of an array from `start` on. */
    write(target: TensorData, start: number, count: number, encoding: Encoding | undefined, at: number): void;
}
//# sourceMappingURL=received-values.d.ts.map