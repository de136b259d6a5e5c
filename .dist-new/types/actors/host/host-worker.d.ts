export {};
//# sourceMappingURL=host-worker.d.ts.map