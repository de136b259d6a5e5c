/** Exclusive use of a store directory. */
export interface StoreLock {
    readonly dir: string;
    /**
     * Makes the process `pid`, for instance a started broker, another holder: the directory stays locked while
     * that process is alive, even if this process has died.
     */
    addHolder(pid: number): Promise<void>;
    /** Unlocks the directory for all holders. Further calls do nothing. */
    release(): Promise<void>;
}
/**
 * Locks a store directory for this process, creating it if needed. Claims of processes that have ended
 * are taken over. It works on one machine only, not for directories shared over a network.
 *
 * Invariant: two processes never both hold the directory. Each first writes its own claim and then
 * reads all others, so that at least one of the two sees the other.
 * @throws STORE_IN_USE naming pid and directory, if a live process holds it.
 * @throws IO or DISK_FULL if the directory cannot be written.
 */
export declare function lockStore(dir: string): Promise<StoreLock>;
//# sourceMappingURL=store-lock.d.ts.map