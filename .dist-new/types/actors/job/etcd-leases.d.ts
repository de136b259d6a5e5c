import type { EtcdClient } from "./etcd-client.ts";
import { type BrokerProbe, type Leases, type LeaseValue } from "./leases.ts";
/**
 * Leases in etcd: a key for each, attached to a lease of etcd's own. It lasts for the lease time rounded
 * up to seconds, and at least for etcd's minimum.
 *
 * They are claimed, renewed and their keys listed only while the broker answers. A host that has lost the
 * broker can serve nothing, so its leases must end; and while the broker is down trainers cannot renew
 * theirs, so a missing lease means nothing. Leases in the broker have both properties by nature.
 */
export declare class EtcdLeases implements Leases {
    #private;
    /** `root`: prefix of all keys; it ends in a slash. */
    constructor(client: EtcdClient, root: string, leaseMs: number, probe: Pick<BrokerProbe, "reach">);
    claim(key: string, value: LeaseValue): Promise<boolean>;
    renew(key: string, value: LeaseValue): Promise<boolean>;
    release(key: string, value: LeaseValue): Promise<void>;
    read(key: string): Promise<LeaseValue | undefined>;
    list(prefix: string): Promise<Map<string, LeaseValue>>;
    keys(prefix: string): Promise<ReadonlySet<string>>;
}
//# sourceMappingURL=etcd-leases.d.ts.map