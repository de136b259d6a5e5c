/** A directory of AssemblyScript, and the TypeScript module that holds what it compiles to. */
export interface KernelModule {
  /** Directory with an index.ts, relative to the checkout. */
  readonly assembly: string;
  /** File that is generated, relative to the checkout. */
  readonly target: string;
  /** Name of its one export. */
  readonly constant: string;
  /** The contents of the export, for its doc comment. */
  readonly holds: string;
}

/** All modules: the kernels of hosts, the encodings of elements and the checksum, which clients need too. */
export declare const KERNEL_MODULES: readonly KernelModule[];

/**
 * Compiles a module: the same bytes for the same sources and compiler. Throws if it does not
 * compile.
 */
export declare function compileModule(module: KernelModule): Promise<Uint8Array>;

/** Returns the text of the module's `target`. */
export declare function renderModule(module: KernelModule, wasm: Uint8Array): string;
