/** A file open for reading at any position; every range is checked against its size. */
export declare class ModelFile {
    #private;
    readonly path: string;
    /** Size of the file when it was opened. */
    readonly bytes: number;
    private constructor();
    /**
     * Opens a regular file.
     * @throws IO if it cannot be opened; BAD_FILE if it is something else, such as a pipe.
     */
    static open(path: string): Promise<ModelFile>;
    /**
     * Reads the `length` bytes at `position` into a buffer of their own.
     * @throws BAD_FILE naming `what` if the file ends before; IO; CLOSED.
     */
    read(position: number, length: number, what: string): Promise<Uint8Array>;
    /**
     * Yields the `length` bytes at `position`, in chunks of at most 1 MiB that belong to the receiver.
     * @throws as {@link ModelFile.read}.
     */
    stream(position: number, length: number, what: string): AsyncGenerator<Uint8Array, void, undefined>;
    /**
     * Refuses a range that does not lie in the file.
     * @throws BAD_FILE naming `what`.
     */
    checkRange(position: number, length: number, what: string): void;
    /** Closes the file; later reads fail with CLOSED. May be called again. */
    close(): Promise<void>;
}
//# sourceMappingURL=model-file.d.ts.map