import type { INamespace } from "protobufjs/light.js";

export declare function paddleDescriptor(): INamespace;
