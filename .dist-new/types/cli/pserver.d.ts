export {};
//# sourceMappingURL=pserver.d.ts.map