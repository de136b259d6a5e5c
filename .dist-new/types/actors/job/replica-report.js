/**
 * Reports on the copies of streams, as the broker describes them; undefined for a job that asks for one copy.
 * @param wanted copies that the job asks for.
 */
export function reportReplicas(streams, wanted) {
    if (wanted <= 1)
        return undefined;
    const missing = new Set();
    const lacking = [];
    for (const { config, cluster } of streams) {
        const others = cluster?.replicas ?? [];
        for (const { name, offline } of others)
            if (offline === true)
                missing.add(name);
        const hasLeader = (cluster?.leader ?? "") !== "";
        const current = others.filter(({ current, offline }) => current && offline !== true);
        const copies = hasLeader ? 1 + current.length : 0;
        if (copies < wanted)
            lacking.push({ stream: config.name, copies });
    }
    lacking.sort((a, b) => (a.stream < b.stream ? -1 : 1));
    return { wanted, missing: [...missing].sort(), lacking };
}
//# sourceMappingURL=replica-report.js.map