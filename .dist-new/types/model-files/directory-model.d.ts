import { type IncomingModel, type OutgoingModel } from "./tensor-headers.ts";
/**
 * Writes a model as a directory: a file per parameter in PaddlePaddle's form, 16 bytes of header and the
 * elements, and `manifest.json`, which tells names, dtypes, shapes and metadata. The directory takes its name
 * once all of it is on disk; a model directory of this name is replaced. For a moment no directory has the
 * name; a crash at that moment leaves the old one under a temporary name. Returns the number of bytes.
 * @throws BAD_PATH as {@link checkReplaceable}; DISK_FULL, IO, and what `model.chunks` throws.
 */
export declare function writeDirectoryModel(directory: string, model: OutgoingModel): Promise<number>;
/**
 * Refuses to replace what is not a model directory: removing the old one must not remove anything
 * that a save did not write.
 * @throws BAD_PATH if there is something else than a directory, or one that holds other files than
 * its manifest lists; IO; BAD_FILE if its manifest is damaged.
 */
export declare function checkReplaceable(directory: string): Promise<void>;
/**
 * Reads the manifest of a model directory and the header of each of its files. Elements have no
 * checksum.
 * @throws BAD_FILE, BAD_DTYPE, IO.
 */
export declare function readDirectoryModel(directory: string): Promise<IncomingModel>;
/** Returns the kind of a directory entry; a symbolic link counts as a file. */
export declare function kindOf(path: string): Promise<"absent" | "directory" | "file">;
//# sourceMappingURL=directory-model.d.ts.map