import { File, ready } from "h5wasm";
import { PserverError } from "../../protocol/errors.ts";
import { fileError } from "../../system/file-errors.ts";
import { badFile } from "../file-text.ts";
import { type EmscriptenFs, SingleFileSystem } from "./single-file-system.ts";

/** Characters of a message of the library that are shown. */
const REASON_MAX = 200;

/** The root attribute that holds a model's metadata, as JSON. */
export const METADATA_ATTRIBUTE = "PSERVER.metadata";

/** The attribute of a dataset that holds the name of its parameter as JSON, if that is not its path. */
export const NAME_ATTRIBUTE = "PSERVER.name";

/** A file open in the HDF5 library, which can reach no other file. */
export class Hdf5File {
  readonly file: File;
  readonly #path: string;
  readonly #system: SingleFileSystem;

  private constructor(path: string, system: SingleFileSystem, file: File) {
    this.#path = path;
    this.#system = system;
    this.file = file;
  }

  /**
   * Opens the file behind a descriptor, or makes it an empty one.
   * @param path names it in messages.
   * @throws BAD_FILE if it is not an HDF5 file; IO, DISK_FULL.
   */
  static async open(path: string, descriptor: number, mode: "read" | "write"): Promise<Hdf5File> {
    const library = await ready;
    library.activate_throwing_error_handler();
    const system = SingleFileSystem.mount(library.FS as unknown as EmscriptenFs, descriptor);
    const open = (): File => new File(system.path, mode === "read" ? "r" : "w");
    return new Hdf5File(path, system, attempt(path, system, "HDF5 file", open));
  }

  /**
   * Runs an operation of the library.
   * @throws IO or DISK_FULL if the operating system reported an error; else BAD_FILE naming `what`,
   * with the library's reason.
   */
  run<T>(what: string, operation: (file: File) => T): T {
    return attempt(this.#path, this.#system, what, () => operation(this.file));
  }

  /** Writes what is left to write and closes it. @throws as {@link Hdf5File.run}. */
  close(): void {
    this.run("end of the file", (file) => file.close());
  }
}

function attempt<T>(path: string, system: SingleFileSystem, what: string, operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (error instanceof PserverError) throw error;
    const { failure } = system;
    if (failure !== undefined) throw fileError(failure.action, path, failure.cause);
    throw badFile(path, what, "what the HDF5 library can handle", reasonOf(error), error);
  }
}

/** The innermost error in the library's stack, which names the cause. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const entries = [...text.matchAll(/^\s*#\d+: .*?\(\): (.*)$/gm)];
  const reason = entries.at(-1)?.[1] ?? text.split("\n", 1)[0] ?? "";
  return reason.replace(/[^\x20-\x7e]/g, "?").slice(0, REASON_MAX);
}
