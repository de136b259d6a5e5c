/** Support for a broker's version: the best choice, or fully supported as well. */
export type BrokerSupport = "recommended" | "supported";
/**
 * Returns how well a broker's version is supported: 2.12 is recommended; 2.10.28 and later of 2.10, 2.11.2
 * and later are supported.
 * @throws BROKER_TOO_OLD for any other, or if `version` is not a version.
 */
export declare function checkBrokerVersion(version: string): BrokerSupport;
//# sourceMappingURL=broker-version.d.ts.map