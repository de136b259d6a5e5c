import { PserverError } from "./errors.js";
const VERSION = /^v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$/;
/**
 * First versions, in two release lines, that refuse a record which they could not read again (above 32 MiB);
 * earlier ones acknowledge it and lose it.
 */
const OLDEST = [2, 10, 28];
const OLDEST_2_11 = [2, 11, 2];
/** The versions that may be used, for messages. */
const NEEDED = `nats-server ${OLDEST.join(".")} or newer (not 2.11.0 or 2.11.1), 2.12 recommended`;
/**
 * Returns how well a broker's version is supported: 2.12 is recommended; 2.10.28 and later of 2.10, 2.11.2
 * and later are supported.
 * @throws BROKER_TOO_OLD for any other, or if `version` is not a version.
 */
export function checkBrokerVersion(version) {
    const parsed = parseVersion(version);
    if (parsed === undefined || isTooOld(parsed)) {
        throw new PserverError("BROKER_TOO_OLD", `broker: expected ${NEEDED}; received ${parsed === undefined ? JSON.stringify(version) : version}`, { expected: NEEDED, received: version });
    }
    return parsed[0] === 2 && parsed[1] === 12 ? "recommended" : "supported";
}
function isTooOld(version) {
    if (isBelow(version, OLDEST))
        return true;
    return version[0] === 2 && version[1] === 11 && isBelow(version, OLDEST_2_11);
}
function parseVersion(text) {
    const match = VERSION.exec(text);
    if (match === null)
        return undefined;
    return [Number(match[1]), Number(match[2]), Number(match[3])];
}
function isBelow(version, bound) {
    if (version[0] !== bound[0])
        return version[0] < bound[0];
    if (version[1] !== bound[1])
        return version[1] < bound[1];
    return version[2] < bound[2];
}
//# sourceMappingURL=broker-version.js.map