import type { INamespace } from "protobufjs/light.js";
/** PaddlePaddle's configuration messages. */
export declare const PADDLE_DESCRIPTOR: INamespace;
//# sourceMappingURL=descriptor.d.ts.map